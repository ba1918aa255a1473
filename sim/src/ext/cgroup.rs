//! Cgroups: the root, and one below it for each weight and treatment asked for.

use std::ffi::c_void;
use std::ptr;

use crate::kernel::Kernel;

/// `struct cgroup`; `storage` belongs to the scheduler's C side.
#[repr(C)]
#[derive(Debug)]
pub struct Cgroup {
    /// `struct css_set`: itself.
    dfl_cgrp: *mut Cgroup,
    parent: *mut Cgroup,
    storage: *mut c_void,
    level: i32,
}

/// `struct scx_cgroup_init_args`.
#[repr(C)]
struct InitArgs {
    weight: u32,
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

/// The weight of the root, which is nobody's.
const ROOT: Kind = (0, 0);
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

    fn find_or_make(&mut self, kind: Kind, parent: *mut Cgroup) -> *mut Cgroup {
        let groups = &mut self.class.ext().cgroups.groups;
        if let Some((_, group)) = groups.iter_mut().find(|(known, _)| *known == kind) {
            return &raw mut **group;
        }
        let level = i32::from(!parent.is_null());
        let (dfl_cgrp, storage) = (ptr::null_mut(), ptr::null_mut());
        groups.push((kind, Box::new(Cgroup { dfl_cgrp, parent, storage, level })));
        let made = &mut groups.last_mut().expect("just pushed").1;
        let group = &raw mut **made;
        made.dfl_cgrp = group;
        let mut args = InitArgs { weight: if kind == ROOT { WEIGHT_DEFAULT } else { kind.0 } };
        let args = (&raw mut args).cast();
        self.op(0, |ops| (ops.cgroup_init)(group.cast(), args));
        if kind.1 != 0 {
            self.class.ext().native.classify(group.cast(), kind.1);
        }
        group
    }
}
