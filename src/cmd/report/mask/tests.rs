use proptest::prelude::*;

use super::*;

fn mask() -> Mask {
    Mask::of("Vault.corp.example\n".trim(), ["mallory".to_owned(), "al".to_owned()])
}

#[test]
fn names_of_hosts_and_users_go_wherever_they_are() {
    for (text, masked) in [
        ("6.12.0-vault-7 built by mallory", "6.12.0-HOST-7 built by USER"),
        ("VAULT.corp.example: al, calm", "HOST: USER, calm"),
        ("vault", "HOST"),
        ("vaults and mallory2", "vaults and mallory2"),
    ] {
        assert_eq!(mask().text(text), masked);
    }
    assert_eq!(Mask::of("localhost", []).text("localhost"), "localhost");
}

#[test]
fn users_that_every_system_has_are_no_people() {
    let passwd = "root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/bin/sh\nmallory:x:1000:1000:M:/home/m:/bin/sh\n\
                  nobody:x:65534:65534::/:/bin/sh\nbroken\n";
    assert_eq!(users_of(passwd), ["mallory"]);
}

#[test]
fn addresses_ids_and_paths_go_and_what_looks_like_them_stays() {
    for (text, masked) in [
        ("metrics on http://192.0.2.7:9994/metrics", "metrics on http://ADDRESS/metrics"),
        (
            "to 192.0.2.7, 2001:db8::7 and [fe80::1%eth0]:80.",
            "to ADDRESS, ADDRESS and [ADDRESS]:80.",
        ),
        ("net 10.0.0.0/8 from 52:54:00:12:34:56:", "net ADDRESS from ADDRESS:"),
        ("id 0123456789abcdef0123456789abcdef", "id ID"),
        ("boot 01234567-89ab-cdef-0123-456789abcdef.", "boot ID."),
        ("in /home/x/secret.toml: line 3", "in PATH: line 3"),
        ("in ~x/secret: m@corp.example", "in PATH: NAME"),
        ("in /etc/scx_powerpack/config.toml", "in /etc/scx_powerpack/config.toml"),
        ("at kernel/sched/ext.c:123 14:08:37", "at kernel/sched/ext.c:123 14:08:37"),
        ("Linux 7.2.13+deb14-cloud-amd64 #1 SMP", "Linux 7.2.13+deb14-cloud-amd64 #1 SMP"),
        ("scx_check_timeout_workfn+0x1ab/0x200", "scx_check_timeout_workfn+0x1ab/0x200"),
        ("a\u{1b}[31m\nb```", "a [31m b'''"),
    ] {
        assert_eq!(mask().text(text), masked);
    }
}

#[test]
fn names_of_tasks_go_whatever_is_in_them() {
    for (text, masked) in [
        (
            "disabled (runnable task stall (my secret(1): x[12] failed to run for 3.2s))",
            "disabled (runnable task stall (TASK[12] failed to run for 3.2s))",
        ),
        (
            "sched_ext: powerpack: secret[7] failed to run",
            "sched_ext: powerpack: TASK[7] failed to run",
        ),
        ("CPU 3 not allowed for a b c[7]", "CPU 3 not allowed for TASK[7]"),
        ("of unknown make: secret[7] and more", "of unknoTASK[7] and more"),
        ("secret[7]", "TASK[7]"),
        ("SCX_DSQ_LOCAL[_ON] verdict", "SCX_DSQ_LOCAL[_ON] verdict"),
    ] {
        assert_eq!(mask().log_line(text), masked);
    }
}

proptest! {
    /// A name of up to 15 bytes goes, whatever is before it: no letter of it is left.
    #[test]
    fn no_task_name_stays(
        before in "[a-f (]{0,20}",
        name in "[Q-Zé(: ]{0,14}",
        after in "[a-f ]{0,20}",
    ) {
        let mut name = name;
        while name.len() > TASK_NAME_MAX {
            name.pop();
        }
        let said = mask().log_line(&format!("{before}{name}[77]{after}"));
        let is_of_name = |c: char| c.is_ascii_uppercase() || c == 'é';
        prop_assert!(!said.replace("TASK", "").contains(is_of_name), "{said}");
        prop_assert!(said.contains("TASK[77]"), "{said}");
    }

    /// Any text at all is masked, and stays one line.
    #[test]
    fn any_text_is_one_line(text in any::<String>()) {
        let said = mask().log_line(&text);
        prop_assert!(!said.contains('\n') && !said.contains("```"), "{said}");
    }
}

#[test]
fn a_cgroup_has_one_name_in_patterns_and_paths() {
    let mut mask = mask();
    assert_eq!(mask.cgroup("secret.slice"), "cgroup-1");
    assert_eq!(mask.cgroup("secret.slice/web.service"), "cgroup-1/cgroup-2");
    assert_eq!(mask.cgroup("user.slice/*"), "cgroup-3/*");
    assert_eq!(mask.cgroup("backup*.service"), "cgroup-4*");
    assert_eq!(mask.cgroup("web.service"), "cgroup-2");
}

#[test]
fn an_address_to_listen_on_says_who_can_reach_it() {
    for (address, said) in [
        ("127.0.0.1:9994", "LOOPBACK:9994"),
        ("[::1]:9", "LOOPBACK:9"),
        ("0.0.0.0:80", "ALL:80"),
        ("192.0.2.7:9994", "ADDRESS:9994"),
    ] {
        assert_eq!(Mask::address(address.parse().unwrap()), said);
    }
}
