//! The list of attacks on the sandbox, each with the layers that stop it.

/// A script that ends with success if it got where it must not get.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// The layers that stop it.
    pub(crate) layers: &'static str,
    pub(crate) script: &'static str,
}

const fn attack(layers: &'static str, name: &'static str, script: &'static str) -> Attack {
    Attack { name, layers, script }
}

/// The layers that keep a set-uid program from being more than its user. Filters need one of them.
pub(crate) const SETUID: &str = "setuid,one-id,landlock,seccomp";

/// Variables name what is planted on the host: PORT, PORT6, DNS and ABSTRACT listen, SOCKET does by path; SECRET, KEY, BARE and
/// REPO are there; MEMORY and QUEUE are shared. `tools` is a layer with a program of another user.
pub(crate) const ATTACKS: [Attack; 82] = [
    attack("network", "loopback service of the host", "exec 3<>/dev/tcp/127.0.0.1/$PORT"),
    attack("network", "http request", r#"exec 3<>/dev/tcp/127.0.0.1/$PORT; printf 'GET / HTTP/1.0\r\n\r\n' >&3"#),
    attack(
        "network",
        "git push by http",
        "timeout 2 git ls-remote http://127.0.0.1:$PORT/x 2>&1 | grep -qi 'empty reply\\|unable to access.*52'; test ${PIPESTATUS[0]} = 124 || timeout 1 bash -c \"exec 3<>/dev/tcp/127.0.0.1/$PORT\"",
    ),
    attack(
        "network,landlock",
        "abstract socket of the host",
        r#"perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0); connect(S, pack("S",1)."\0$ENV{ABSTRACT}") or exit 1'"#,
    ),
    attack("network", "loopback service by IPv6", "exec 3<>/dev/tcp/::1/$PORT6"),
    attack(
        "network",
        "loopback service by IPv4 in IPv6",
        r#"python3 -c "import socket; s=socket.socket(socket.AF_INET6); s.settimeout(2); s.connect(('::ffff:127.0.0.1', $PORT))""#,
    ),
    attack(
        "network",
        "resolver of the host",
        r#"python3 -c "import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(b'who', ('127.0.0.1', $DNS)); s.recv(9)""#,
    ),
    attack("network", "addresses of the host by IPv6", "test $(wc -l < /proc/net/if_inet6) -gt 1"),
    attack("network", "route to the outside", "test $(wc -l < /proc/net/route) -gt 1"),
    attack("root,landlock", "planted secret", "cat $SECRET || cat /host$SECRET"),
    attack(
        "root,landlock",
        "push by path",
        "git push -q $BARE HEAD:refs/heads/x$RANDOM || git push -q /host$BARE HEAD:refs/heads/x$RANDOM",
    ),
    attack(
        "root,landlock",
        "push by file url",
        "git push -q file://$BARE HEAD:refs/heads/y || git push -q file:///host$BARE HEAD:refs/heads/y$RANDOM",
    ),
    attack("root,landlock", "the host's repository", "cat $REPO/.git/HEAD || cat /host$REPO/.git/HEAD"),
    attack("seccomp", "vsock", r#"perl -e 'socket(S,40,1,0) or exit 1'"#),
    attack(
        "seccomp",
        "trace another process",
        r#"sleep 9 & perl -e 'exit(syscall(101,16,$ARGV[0]+0,0,0)==0 ? 0 : 1)' $!"#,
    ),
    attack(
        "seccomp",
        "kernel keyring",
        r#"perl -e '$t="user";$d="k";$p="v"; exit(syscall(248,$t,$d,$p,1,-3)>0 ? 0 : 1)'"#,
    ),
    attack("seccomp,nested-namespaces", "nested user namespace", "unshare --user true"),
    attack(
        "seccomp,nested-namespaces,landlock",
        "mount in a nested namespace",
        "unshare --user --map-root-user --mount mount -t tmpfs x /tmp",
    ),
    attack("landlock", "survive the end of memory", "echo 0 > /proc/self/oom_score_adj"),
    attack("landlock", "write beside the workspace", "echo x > /run/x"),
    attack("landlock", "signal the first process", "kill -0 1"),
    attack("read-only-mail", "write what was delivered", "echo x > .lattice/context/task.md"),
    attack("read-only-mail", "rewrite the skill", "echo x > .lattice/skills/protocol/SKILL.md"),
    attack(
        "read-only-mail",
        "move the outbox away",
        "mv .lattice/outbox.jsonl .lattice/o && mv .lattice/o .lattice/outbox.jsonl",
    ),
    attack(
        "read-only-mail",
        "outbox as a link",
        "cp .lattice/outbox.jsonl /tmp/o; ln -sf /etc/passwd .lattice/outbox.jsonl && rm .lattice/outbox.jsonl && cp /tmp/o .lattice/outbox.jsonl",
    ),
    attack("limits", "a file without end", "truncate -s 9G /workspace/huge && rm /workspace/huge"),
    attack("root,landlock", "name of the host", "cat /etc/machine-id || cat /host/etc/hostname"),
    attack("root,landlock", "homes of the host", "ls /host/home"),
    attack("root,landlock", "processes of the host", "cat /host/proc/1/comm"),
    attack("root,landlock", "temporary folder of the host", "touch /host/tmp/lattice-$$ && rm /host/tmp/lattice-$$"),
    attack(
        "root,landlock",
        "socket of the host by path",
        r#"perl -MSocket -e 'for my $path ($ENV{SOCKET}, "/host$ENV{SOCKET}") { socket(S,AF_UNIX,SOCK_STREAM,0); exit 0 if connect(S, sockaddr_un($path)) } exit 1'"#,
    ),
    attack(
        "root,landlock",
        "link to a file of the host",
        "ln -sfn $SECRET l1; ln -sfn /host$SECRET l2; cat l1 || cat l2",
    ),
    attack(
        "root,landlock",
        "ref as a link to a file of the host",
        "ln -sfn /host$SECRET .git/refs/heads/out; cat .git/refs/heads/out; r=$?; rm .git/refs/heads/out; exit $r",
    ),
    attack(
        "root,landlock",
        "store of events",
        "head -c 15 $REPO/.git/lattice/sprites.db || head -c 15 /host$REPO/.git/lattice/sprites.db | grep -q SQLite",
    ),
    attack("root,landlock", "other sprites", "ls $REPO/.git/lattice/sprites || ls /host$REPO/.git/lattice/sprites"),
    attack("root,landlock", "clone by path", "git clone -q $REPO /tmp/c1 || git clone -q /host$REPO /tmp/c2"),
    attack("root,landlock", "fetch by file url", "git fetch -q file://$REPO || git fetch -q file:///host$REPO"),
    attack(
        "root,landlock",
        "hook in a repository of the host",
        "mkdir -p /host$BARE/hooks && touch /host$BARE/hooks/x$RANDOM",
    ),
    attack("root,landlock", "key for ssh", "cat $KEY || cat /host$KEY"),
    attack("root,landlock", "devices of the host", "ls /sys/class || ls /host/sys/class"),
    attack("network", "interfaces of the host", "test $(wc -l < /proc/net/dev) -gt 3"),
    attack("network", "connections of the host", "grep -q :$(printf %04X $PORT) /proc/net/tcp"),
    attack("network", "sockets of the host", "grep -q @$ABSTRACT /proc/net/unix"),
    attack(
        "network",
        "python client",
        r#"python3 -c "import socket; socket.create_connection(('127.0.0.1', $PORT), 2)""#,
    ),
    attack(
        "network",
        "push by ssh",
        r#"printf '#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/%s && touch /tmp/ssh\n' $PORT > /tmp/s; chmod +x /tmp/s; GIT_SSH=/tmp/s git push -q ssh://h/y HEAD; test -e /tmp/ssh"#,
    ),
    attack("network", "git protocol", "timeout 2 git ls-remote git://127.0.0.1:$PORT/x; test $? = 124"),
    attack("seccomp", "own table of files", "perl -e 'exit(syscall(272,0x400)==0 ? 0 : 1)'"),
    attack("seccomp", "faults in user space", "perl -e 'exit(syscall(323,1)>=0 ? 0 : 1)'"),
    attack("seccomp", "ring of system calls", r#"perl -e '$p="\0"x120; exit(syscall(425,1,$p)>=0 ? 0 : 1)'"#),
    attack(
        "seccomp",
        "files of another process",
        "sleep 9 & perl -e '$f=syscall(434,$ARGV[0]+0,0); exit(syscall(438,$f,0,0)>=0 ? 0 : 1)' $!",
    ),
    attack(
        "seccomp",
        "handle of a file",
        r#"perl -e '$h=pack("Ii",128,0).("\0"x128); $m=pack("i",0); $p="/tmp"; exit(syscall(303,-100,$p,$h,$m,0)==0 ? 0 : 1)'"#,
    ),
    attack("seccomp", "keyring of the session", "perl -e 'exit(syscall(250,0,-3,1)>0 ? 0 : 1)'"),
    attack(
        "seccomp",
        "clone with hidden flags",
        r#"perl -e '$a=pack("Q8",0,0,0,0,17,0,0,0); $r=syscall(435,$a,64); exit($r>=0 ? 0 : 1)'"#,
    ),
    attack("seccomp", "detached mount", r#"perl -e '$p="/tmp"; exit(syscall(428,-100,$p,0)>=0 ? 0 : 1)'"#),
    attack("seccomp", "let oneself be traced", "perl -e 'exit(syscall(101,0,0,0,0)==0 ? 0 : 1)'"),
    attack("seccomp,nested-namespaces", "nested process namespace", "unshare --user --pid --fork true"),
    attack("seccomp,nested-namespaces", "nested network namespace", "unshare --user --net true"),
    attack(
        "seccomp,nested-namespaces,landlock",
        "root in a nested namespace",
        "unshare --user --map-root-user id -u | grep -qx 0",
    ),
    attack(
        "seccomp,nested-namespaces",
        "user namespace by clone",
        "perl -e '$r=syscall(56,0x10000011,0,0,0,0); exit($r>=0 ? 0 : 1)'",
    ),
    attack("privileges", "capabilities to gain", "! grep -q 'CapBnd:.0000000000000000' /proc/self/status"),
    attack("landlock", "folder beside the workspace", "mkdir /run/d"),
    attack("landlock", "pipe beside the workspace", "mkfifo /run/f"),
    attack("landlock", "link beside the workspace", "ln -s / /run/l"),
    attack("landlock", "file among the devices", "echo x > /dev/x"),
    attack("landlock", "what a dump of memory holds", "echo 0xff > /proc/self/coredump_filter"),
    attack("landlock", "marks of used memory", "echo 1 > /proc/self/clear_refs"),
    attack("landlock", "another name for its process", "echo x > /proc/self/comm"),
    attack("read-only-mail", "remove what was delivered", "rm .lattice/context/task.md"),
    attack("read-only-mail", "add to what was delivered", "touch .lattice/context/new"),
    attack("read-only-mail", "replace the context", "mv .lattice/context .lattice/c && mv .lattice/c .lattice/context"),
    attack("read-only-mail", "replace the skills", "mv .lattice/skills .lattice/s && mv .lattice/s .lattice/skills"),
    attack("read-only-mail", "another name for the outbox", "ln .lattice/outbox.jsonl .lattice/o2 && rm .lattice/o2"),
    attack("limits", "more open files", "ulimit -n 9000"),
    attack("limits", "dumps of memory", "ulimit -c unlimited"),
    attack("ids", "root by setuid", "perl -e '$> = 0; $< = 0; exit($> == 0 && $< == 0 ? 0 : 1)'"),
    attack(SETUID, "program that belongs to another user and runs as that", "tools/id -u | grep -qx 0"),
    attack("read-only-root,landlock", "library for every program", "echo /tmp/x.so > /etc/ld.so.preload"),
    attack("root,landlock", "device of the host", "head -c 1 /host/dev/urandom"),
    attack("arguments", "paths of the host in the first process's arguments", "grep -q / /proc/1/cmdline"),
    attack(
        "seccomp",
        "any other family of sockets",
        r#"perl -e 'for my $f (0, 3..9, 11..15, 17..45) { for my $t (1, 2, 3, 5) { exit 0 if socket(S,$f,$t,0) } } exit 1'"#,
    ),
    attack("ipc", "shared memory of the host", "ipcs -m -i $MEMORY | grep -q bytes"),
    attack("ipc", "message queue of the host", "ipcs -q -i $QUEUE | grep -q Queue"),
];
