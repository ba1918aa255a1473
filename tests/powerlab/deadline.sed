# What is mended in the kernel's kernel/sched/deadline.c, 6.12.117: a CPU that goes offline
# stops its deadline server. That has stopped long before where no task of the fair class runs, as
# under any sched_ext scheduler; what it then gives back a second time makes the bandwidth in use
# underflow, and the kernel warns (inactive_task_timer). Later kernels look first.
/^void dl_server_stop/,/^}/s/if (!dl_se->dl_runtime)/if (!dl_se->dl_runtime || !dl_se->dl_server_active)/
