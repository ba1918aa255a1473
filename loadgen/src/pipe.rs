//! Two processes that send a byte to and fro: what a switch costs. In virtual
//! time a nanosecond is an instruction.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::clock;

/// Rounds before the clock starts, for caches and averages to settle.
const WARM_UP: u32 = 500;

/// What a round trip took.
#[derive(Debug, Serialize)]
pub struct Report {
    pub rounds: u32,
    pub ns_per_round: f64,
}

/// Sends `rounds` bytes there and back, both ends bound to `cpu` if given.
pub fn run(rounds: u32, cpu: Option<usize>) -> Result<Report> {
    if let Some(cpu) = cpu {
        clock::pin(&[cpu])?;
    }
    let (mut there_out, mut there_in) = pipe()?;
    let (mut back_out, mut back_in) = pipe()?;
    // SAFETY: no other thread exists, and the child only reads and writes.
    match unsafe { libc::fork() } {
        -1 => bail!("cannot fork"),
        0 => {
            drop(there_in);
            echo(&mut there_out, &mut back_in);
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
        _ => drop(there_out),
    }
    let mut byte = [0];
    let mut begin = 0;
    for round in 0..rounds + WARM_UP {
        if round == WARM_UP {
            begin = clock::now_ns();
        }
        there_in.write_all(&byte)?;
        back_out.read_exact(&mut byte)?;
    }
    let elapsed = clock::now_ns() - begin;
    Ok(Report { rounds, ns_per_round: elapsed as f64 / f64::from(rounds) })
}

fn echo(from: &mut File, to: &mut File) {
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
}

fn pipe() -> Result<(File, File)> {
    let mut fds = [0; 2];
    // SAFETY: an array of two; the descriptors are ours alone from here.
    unsafe {
        if libc::pipe(fds.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error()).context("cannot make a pipe");
        }
        Ok((File::from_raw_fd(fds[0]), File::from_raw_fd(fds[1])))
    }
}
