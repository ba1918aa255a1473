//! What the instrumented scheduler calls: at each basic block, and for each access to memory that is not
//! certain to be its own alone. Atomic operations are done here: there is but one thread.

use super::recorder;

/// What is this near to the stack pointer of who called is on the stack: that is a CPU's own. Programs have 512 bytes
/// of it, functions of theirs a few times that.
const STACK_BYTES: usize = 64 << 10;

fn access(address: usize, writes: bool) {
    recorder(|r| {
        let (cpu, stack) = r.here;
        if address.abs_diff(stack) > STACK_BYTES && r.lines.access(cpu, address, writes) {
            r.cost.lines += 1;
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc() {
    recorder(|r| r.cost.blocks += 1);
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_init() {}

#[unsafe(no_mangle)]
extern "C" fn __tsan_func_entry(_caller: usize) {}

#[unsafe(no_mangle)]
extern "C" fn __tsan_func_exit() {}

#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    (0..len).step_by(8).for_each(|at| access(to as usize + at, true));
    // SAFETY: the caller's.
    unsafe { to.write_bytes(byte as u8, len) };
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    (0..len).step_by(8).for_each(|at| {
        access(from as usize + at, false);
        access(to as usize + at, true);
    });
    // SAFETY: the caller's.
    unsafe { from.copy_to(to, len) };
    to
}

macro_rules! plain {
    ($($name:ident $writes:literal)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(address: usize) {
            access(address, $writes);
        }
    )*};
}

plain! {
    __tsan_read1 false
    __tsan_read2 false
    __tsan_read4 false
    __tsan_read8 false
    __tsan_read16 false
    __tsan_unaligned_read2 false
    __tsan_unaligned_read4 false
    __tsan_unaligned_read8 false
    __tsan_unaligned_read16 false
    __tsan_write1 true
    __tsan_write2 true
    __tsan_write4 true
    __tsan_write8 true
    __tsan_write16 true
    __tsan_unaligned_write2 true
    __tsan_unaligned_write4 true
    __tsan_unaligned_write8 true
    __tsan_unaligned_write16 true
}

/// An atomic operation at `address`, which writes even if it changes nothing.
fn atomic(address: usize) {
    recorder(|r| r.cost.atomics += 1);
    access(address, true);
}

macro_rules! atomics {
    ($($name:ident $number:ty, $op:expr;)*) => {$(
        /// Returns what was there.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(at: *mut $number, value: $number, _order: i32) -> $number {
            atomic(at as usize);
            let op: fn($number, $number) -> $number = $op;
            // SAFETY: the caller's.
            unsafe {
                let was = *at;
                *at = op(was, value);
                was
            }
        }
    )*};
}

atomics! {
    __tsan_atomic32_fetch_add u32, u32::wrapping_add;
    __tsan_atomic64_fetch_add u64, u64::wrapping_add;
    __tsan_atomic32_fetch_sub u32, u32::wrapping_sub;
    __tsan_atomic64_fetch_sub u64, u64::wrapping_sub;
    __tsan_atomic64_fetch_and u64, |a, b| a & b;
    __tsan_atomic32_fetch_or u32, |a, b| a | b;
    __tsan_atomic64_fetch_or u64, |a, b| a | b;
    __tsan_atomic32_exchange u32, |_, b| b;
    __tsan_atomic64_exchange u64, |_, b| b;
}

macro_rules! compare_exchanges {
    ($($name:ident $number:ty;)*) => {$(
        /// Returns what was there.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            at: *mut $number,
            expected: $number,
            value: $number,
            _order: i32,
            _failed_order: i32,
        ) -> $number {
            atomic(at as usize);
            // SAFETY: the caller's.
            unsafe {
                let was = *at;
                if was == expected {
                    *at = value;
                }
                was
            }
        }
    )*};
}

compare_exchanges! {
    __tsan_atomic32_compare_exchange_val u32;
    __tsan_atomic64_compare_exchange_val u64;
}
