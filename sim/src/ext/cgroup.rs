//! Cgroups: the root, one below it for each weight and treatment asked for, and those made by name.

use std::ffi::c_void;
use std::ptr;

use crate::fair::Limit;
use crate::kernel::{Class, Kernel};

/// `struct cgroup`; `storage` belongs to the scheduler's C side.
#[repr(C)]
#[derive(Debug)]
pub struct Cgroup {
    /// `struct css_set`: itself.
    dfl_cgrp: *mut Cgroup,
    parent: *mut Cgroup,
    storage: *mut c_void,
    level: i32,
    /// `struct kernfs_node`: its id.
    kn: *mut u64,
    id: u64,
}

/// `struct scx_cgroup_init_args`.
#[repr(C)]
struct InitArgs {
    weight: u32,
    /// Period, quota and burst: not asked for here.
    bandwidth: [u64; 3],
}

/// A weight, and what the user's table says.
type Kind = (u32, u32);

/// Those that are there.
#[derive(Default)]
pub struct Cgroups {
    /// Boxed: the C side has their addresses.
    #[allow(clippy::vec_box)]
    groups: Vec<(Kind, Box<Cgroup>)>,
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for (_, group) in &self.groups {
            // SAFETY: allocated by the C side with calloc, or null.
            unsafe { libc::free(group.storage) };
        }
    }
}

/// The weight of the root, which has none of its own.
const ROOT: Kind = (0, 0);
/// That of cgroups that are known by their number alone.
const NAMED: Kind = (0, u32::MAX);
const WEIGHT_DEFAULT: u32 = 100;

impl Kernel {
    /// The cgroup of that weight and treatment, made if there is none; the root has
    /// neither.
    pub(super) fn cgroup_of(&mut self, weight: Option<u32>, workload: u32) -> *mut c_void {
        let root = self.find_or_make(ROOT, ptr::null_mut());
        if weight.is_none() && workload == 0 {
            return root.cast();
        }
        self.find_or_make((weight.unwrap_or(WEIGHT_DEFAULT), workload), root).cast()
    }

    /// Sets the `cpu.max` of the cgroup of that weight: so much in each period, and what may be
    /// saved up for later ones (us). No quota: "max".
    pub fn limit_cgroup(
        &mut self,
        weight: u32,
        quota_us: Option<u64>,
        period_us: u64,
        burst_us: u64,
    ) {
        if let Class::Fair(_) = self.class {
            let limit = |quota| Limit::new(weight, quota, period_us, burst_us, self.now_ns);
            return self.fair_limit(weight, quota_us.map(limit));
        }
        let group = self.cgroup_of(Some(weight), 0);
        let quota_us = quota_us.unwrap_or(u64::MAX);
        self.op(0, |ops| (ops.cgroup_set_bandwidth)(group, period_us, quota_us, burst_us));
    }

    /// Makes a cgroup of that `cpu.weight` below `parent`, or below the root, and says which one it
    /// is to [`Home::Made`](crate::Home).
    pub fn make_cgroup(&mut self, parent: Option<usize>, weight: u32) -> usize {
        let root = self.find_or_make(ROOT, ptr::null_mut());
        let parent = parent.map_or(root, |id| self.cgroup_at(id).cast());
        self.make(NAMED, parent, weight);
        self.class.ext().cgroups.groups.len() - 1
    }

    /// What [`Kernel::make_cgroup`] has made.
    pub(super) fn cgroup_at(&mut self, id: usize) -> *mut c_void {
        (&raw mut *self.class.ext().cgroups.groups[id].1).cast()
    }

    fn find_or_make(&mut self, kind: Kind, parent: *mut Cgroup) -> *mut Cgroup {
        let groups = &mut self.class.ext().cgroups.groups;
        if let Some((_, group)) = groups.iter_mut().find(|(known, _)| *known == kind) {
            return &raw mut **group;
        }
        let weight = if kind == ROOT { WEIGHT_DEFAULT } else { kind.0 };
        let group = self.make(kind, parent, weight);
        if kind.1 != 0 {
            self.class.ext().native.classify(group.cast(), kind.1);
        }
        group
    }

    fn make(&mut self, kind: Kind, parent: *mut Cgroup, weight: u32) -> *mut Cgroup {
        let groups = &mut self.class.ext().cgroups.groups;
        // SAFETY: null, or one of `groups`, which live as long as the kernel.
        let level = unsafe { parent.as_ref() }.map_or(0, |parent| parent.level + 1);
        let id = groups.len() as u64 + 1;
        let (dfl_cgrp, storage) = (ptr::null_mut(), ptr::null_mut());
        groups.push((
            kind,
            Box::new(Cgroup { dfl_cgrp, parent, storage, level, kn: ptr::null_mut(), id }),
        ));
        let made = &mut groups.last_mut().expect("just pushed").1;
        let group = &raw mut **made;
        made.dfl_cgrp = group;
        made.kn = &raw mut made.id;
        let mut args = InitArgs { weight, bandwidth: [0; 3] };
        let args = (&raw mut args).cast();
        self.op(0, |ops| (ops.cgroup_init)(group.cast(), args));
        group
    }
}
