//! Cgroups: the root, and one below it for each weight asked for.

use std::ffi::c_void;
use std::ptr;

use crate::kernel::Kernel;

/// `struct cgroup`; `storage` belongs to the scheduler's C side.
#[repr(C)]
#[derive(Debug)]
pub struct Cgroup {
    parent: *mut Cgroup,
    storage: *mut c_void,
    level: i32,
}

/// `struct scx_cgroup_init_args`.
#[repr(C)]
struct InitArgs {
    weight: u32,
}

/// Those that are there, by weight; 100 is the root.
#[derive(Default)]
pub struct Cgroups {
    /// Boxed: the C side has their addresses.
    #[allow(clippy::vec_box)]
    groups: Vec<(u32, Box<Cgroup>)>,
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
const ROOT: u32 = 0;

impl Kernel {
    /// The cgroup of that weight, made if there is none; `None`: the root.
    pub(super) fn cgroup_of(&mut self, weight: Option<u32>) -> *mut c_void {
        let root = self.find_or_make(ROOT, ptr::null_mut());
        let group = weight.map_or(root, |weight| self.find_or_make(weight, root));
        group.cast()
    }

    fn find_or_make(&mut self, weight: u32, parent: *mut Cgroup) -> *mut Cgroup {
        let groups = &mut self.class.ext().cgroups.groups;
        if let Some((_, group)) = groups.iter_mut().find(|(known, _)| *known == weight) {
            return &raw mut **group;
        }
        let level = i32::from(!parent.is_null());
        groups.push((weight, Box::new(Cgroup { parent, storage: ptr::null_mut(), level })));
        let group = &raw mut *groups.last_mut().expect("just pushed").1;
        let mut args = InitArgs { weight: if weight == ROOT { 100 } else { weight } };
        let args = (&raw mut args).cast();
        self.op(0, |ops| (ops.cgroup_init)(group.cast(), args));
        group
    }
}
