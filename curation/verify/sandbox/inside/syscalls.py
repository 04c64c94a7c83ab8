"""Lists the numbers of the system calls that the sandbox names, per machine.

Source: the kernel's headers (``asm/unistd_64.h`` for x86_64; ``asm-generic/unistd.h`` for aarch64). A name that a
machine's table lacks does not exist there. The filter refuses all calls that are not named here, future ones too.
"""

from __future__ import annotations


def _table(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (entry.split("=") for entry in text.split())}


X86_64 = _table(
    """
    read=0 write=1 readv=19 writev=20 pread64=17 pwrite64=18 preadv=295 pwritev=296 open=2
    openat=257 close=3 stat=4 fstat=5 lstat=6 newfstatat=262 statx=332 lseek=8 mmap=9 mprotect=10 munmap=11
    mremap=25 madvise=28 brk=12 msync=26 mlock=149 munlock=150 rt_sigaction=13 rt_sigprocmask=14
    rt_sigreturn=15 sigaltstack=131 rt_sigpending=127 rt_sigtimedwait=128 rt_sigsuspend=130 access=21 faccessat=269
    faccessat2=439 pipe=22 pipe2=293 select=23 pselect6=270 poll=7 ppoll=271 epoll_create=213 epoll_create1=291
    epoll_ctl=233 epoll_wait=232 epoll_pwait=281 eventfd=284 eventfd2=290 dup=32 dup2=33 dup3=292
    nanosleep=35 clock_nanosleep=230 getitimer=36 setitimer=38 alarm=37 pause=34 getpid=39 gettid=186 getppid=110
    getuid=102 geteuid=107 getgid=104 getegid=108 getgroups=115 getresuid=118 getresgid=120 getpgrp=111 getpgid=121
    getsid=124 setsid=112 exit=60 exit_group=231 flock=73 fsync=74 fdatasync=75 ftruncate=77 truncate=76 getdents64=217
    getcwd=79 chdir=80 fchdir=81 rename=82 renameat=264 renameat2=316 mkdir=83 mkdirat=258 rmdir=84 creat=85
    unlink=87 unlinkat=263 readlink=89 readlinkat=267 symlink=88 symlinkat=266 link=86 linkat=265 umask=95
    gettimeofday=96 time=201 clock_gettime=228 clock_getres=229 times=100 getrusage=98 sysinfo=99 uname=63
    getrlimit=97 setrlimit=160 statfs=137 fstatfs=138 futex=202 set_robust_list=273
    rseq=334 set_tid_address=218 arch_prctl=158 sched_yield=24 sched_getaffinity=204
    sched_getparam=143 sched_getscheduler=145 sched_get_priority_max=146 sched_get_priority_min=147
    getcpu=309 getpriority=140 getrandom=318 sendfile=40
    fadvise64=221 restart_syscall=219 close_range=436 timerfd_create=283
    timerfd_settime=286 timerfd_gettime=287
    kill=62 tkill=200 tgkill=234 prlimit64=302 sched_setaffinity=203 fcntl=72 ioctl=16
    prctl=157 clone=56 clone3=435 fork=57 vfork=58 execve=59 execveat=322 wait4=61 waitid=247 chmod=90 fchmod=91
    fchmodat=268 setpgid=109 pivot_root=155 capset=126 seccomp=317 landlock_create_ruleset=444 landlock_add_rule=445
    landlock_restrict_self=446 mount_setattr=442 sendto=44 recvmsg=47
    recvfrom=45 shutdown=48 getsockname=51 getpeername=52 socketpair=53 getsockopt=55
    unshare=272 mount=165 umount2=166 sethostname=170 mincore=27 mknod=133 mknodat=259 chown=92 fchown=93 lchown=94
    fchownat=260 utime=132 utimes=235 futimesat=261 utimensat=280 fchmodat2=452 setpriority=141 fallocate=285
    getxattr=191 lgetxattr=192 fgetxattr=193 listxattr=194 llistxattr=195 flistxattr=196
    """
)

AARCH64 = _table(
    """
    read=63 write=64 readv=65 writev=66 pread64=67 pwrite64=68 preadv=69 pwritev=70
    openat=56 close=57 fstat=80 newfstatat=79 statx=291 lseek=62 mmap=222 mprotect=226 munmap=215 mremap=216
    madvise=233 brk=214 msync=227 mlock=228 munlock=229 rt_sigaction=134 rt_sigprocmask=135
    rt_sigreturn=139 sigaltstack=132 rt_sigpending=136 rt_sigtimedwait=137 rt_sigsuspend=133 faccessat=48
    faccessat2=439 pipe2=59 pselect6=72 ppoll=73 epoll_create1=20 epoll_ctl=21 epoll_pwait=22
    eventfd2=19 dup=23 dup3=24 nanosleep=101 clock_nanosleep=115 getitimer=102 setitimer=103 getpid=172 gettid=178
    getppid=173 getuid=174 geteuid=175 getgid=176 getegid=177 getgroups=158 getresuid=148 getresgid=150 getpgid=155
    getsid=156 setsid=157 exit=93 exit_group=94 flock=32 fsync=82 fdatasync=83 ftruncate=46 truncate=45
    getdents64=61 getcwd=17
    chdir=49 fchdir=50 renameat=38 renameat2=276 mkdirat=34 unlinkat=35 readlinkat=78 symlinkat=36 linkat=37
    umask=166 gettimeofday=169 clock_gettime=113 clock_getres=114 times=153 getrusage=165 sysinfo=179 uname=160
    getrlimit=163 setrlimit=164 statfs=43 fstatfs=44 futex=98 set_robust_list=99
    rseq=293 set_tid_address=96 sched_yield=124 sched_getaffinity=123 sched_getparam=121 sched_getscheduler=120
    sched_get_priority_max=125 sched_get_priority_min=126 getcpu=168 getpriority=141
    getrandom=278 sendfile=71 fadvise64=223 restart_syscall=128
    close_range=436 timerfd_create=85 timerfd_settime=86 timerfd_gettime=87 kill=129 tkill=130 tgkill=131 prlimit64=261
    sched_setaffinity=122 fcntl=25 ioctl=29 prctl=167 clone=220 clone3=435 execve=221 execveat=281 wait4=260
    waitid=95 fchmod=52 fchmodat=53 setpgid=154 pivot_root=41 capset=91 seccomp=277 landlock_create_ruleset=444
    landlock_add_rule=445 landlock_restrict_self=446 mount_setattr=442 sendto=206
    recvmsg=212 recvfrom=207 shutdown=210 getsockname=204 getpeername=205 socketpair=199 getsockopt=209
    unshare=97 mount=40 umount2=39 sethostname=161 mincore=232 mknodat=33 fchown=55 fchownat=54 utimensat=88
    fchmodat2=452 setpriority=140 fallocate=47 getxattr=8 lgetxattr=9 fgetxattr=10 listxattr=11 llistxattr=12
    flistxattr=13
    """
)

NUMBERS = {"x86_64": X86_64, "aarch64": AARCH64}

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The machine in ``seccomp_data.arch`` (``linux/audit.h``)."""
