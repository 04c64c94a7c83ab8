/* Starts programs: makes a process, runs the system calls that Python prepared in it, and goes on with the next program
   while the last one's result needs no decision.

   It decides nothing: confinement.py, whose structures these are, lists the calls with their order and arguments. It is
   compiled because an interpreter between fork and program writes to some 150 pages, each of which is copied; because
   one that runs between two programs is slow with cold caches; and because an executed program needs no copy of its
   parent's memory.

   Invariants: the child runs only these calls until all are done; one that fails is named on the report descriptor and
   ends the child with the status for "no foreign code has run". */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct step {
    const char *name;
    long number;
    long arguments[6];
};

struct plan {
    struct step *steps;
    long count;
    long streams;     /* of the steps, the first of three that put a standard stream in its place */
    uint32_t **marks; /* where the filter needs the number of the new process */
    long marked;
    long report;
    long failed;
    long flags;                      /* of clone(2), for forks */
    long link;                       /* source of requests */
    void *(*become)(void *);         /* PyObject_CallNoArgs */
    void *run;                       /* called in the new process, does not return */
};

static int run(void *given) {
    const struct plan *plan = given;
    uint32_t pid = (uint32_t)syscall(SYS_getpid);
    for (long mark = 0; mark < plan->marked; mark++)
        *plan->marks[mark] = pid;
    for (long place = 0; place < plan->count; place++) {
        const struct step *step = &plan->steps[place];
        const long *with = step->arguments;
        if (syscall(step->number, with[0], with[1], with[2], with[3], with[4], with[5]) < 0) {
            dprintf((int)plan->report, "%s: error %d", step->name, errno);
            _exit((int)plan->failed);
        }
    }
    return 0;
}

/* Tests of one program that have no files, and when to stop running them one after another. */
struct tests {
    long link; /* to the forking process, or -1 if a program is executed from here */
    long control;
    long tick_ms;
    long ahead_us, ahead_bytes;
    const char *folder; /* a test must leave it empty */
};

struct test {
    int streams[3];
    int pid;
    long ended; /* a descriptor that is readable once the program has ended */
    long status;
    long cpu_us;
    long wall_us;
    long peak_kb;
    long sizes[2]; /* of its outputs 1 and 2 */
};

/* A request: a byte, with three descriptors. */
struct parcel {
    char byte;
    struct iovec words;
    union {
        char room[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr head;
    } ancillary;
    struct msghdr message;
};

static struct msghdr *parcel(struct parcel *made) {
    made->words = (struct iovec){&made->byte, 1};
    made->ancillary.head = (struct cmsghdr){CMSG_LEN(3 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    made->message = (struct msghdr){.msg_iov = &made->words, .msg_iovlen = 1};
    made->message.msg_control = &made->ancillary;
    made->message.msg_controllen = sizeof made->ancillary;
    return &made->message;
}

/* As fork(2): returns 0 in the child, once the calls are done; -1 if there is none. */
long forked(const struct plan *plan) {
    long pid = syscall(SYS_clone, plan->flags | SIGCHLD, 0L, 0L, 0L, 0L);
    if (pid == 0)
        run((void *)plan);
    return pid;
}

/* Forks per request of three descriptors over ``link``, and answers with the number of the new process. That process
   runs the interpreter from here, as a return through the calling frames would write to some 30 more pages. Returns 0 at
   the end of the link, -1 on an error. This process writes to only three pages, so its forks share the others. */
long served(const struct plan *plan) {
    for (;;) {
        struct parcel got;
        long length = recvmsg((int)plan->link, parcel(&got), MSG_CMSG_CLOEXEC);
        if (length <= 0)
            return length;
        struct cmsghdr *head = CMSG_FIRSTHDR(&got.message);
        if (head == NULL || head->cmsg_len != CMSG_LEN(3 * sizeof(int)))
            return -1;
        int streams[3];
        memcpy(streams, CMSG_DATA(head), sizeof streams);
        for (int place = 0; place < 3; place++)
            plan->steps[plan->streams + place].arguments[0] = streams[place];
        int32_t pid = (int32_t)forked(plan);
        if (pid == 0) {
            plan->become(plan->run);
            return -1;
        }
        if (pid < 0 || send((int)plan->link, &pid, sizeof pid, 0) < 0)
            return -1;
        for (int place = 0; place < 3; place++)
            close(streams[place]);
    }
}

/* As vfork(2) for calls that end in exec: the child shares this process's memory until then. */
static long executed(const struct plan *plan) {
    static char stack[1 << 16] __attribute__((aligned(64)));
    return clone(run, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)plan);
}

/* Returns the number of the process that the forking one makes; 0 if that has died, -1 if the judge is gone. */
static long asked(const struct tests *tests, const struct test *test) {
    struct parcel sent;
    parcel(&sent);
    sent.byte = '.';
    memcpy(CMSG_DATA(&sent.ancillary.head), test->streams, sizeof test->streams);
    struct pollfd either[2] = {{(int)tests->link, POLLIN, 0}, {(int)tests->control, 0, 0}};
    int32_t pid = 0;
    if (sendmsg((int)tests->link, &sent.message, MSG_NOSIGNAL) < 0)
        return 0;
    if (poll(either, 2, -1) < 0 || either[1].revents)
        return -1;
    return recv((int)tests->link, &pid, sizeof pid, 0) == sizeof pid ? pid : 0;
}

static long now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000L + time.tv_nsec / 1000;
}

/* Runs a test until the first tick. Returns 1 if it has ended, 0 if it still runs, -1 if the judge is gone, -2 if no
   process could be made. */
static long tried(const struct plan *plan, const struct tests *tests, struct test *test) {
    long pid, start = now_us();
    if (tests->link >= 0) {
        pid = asked(tests, test);
    } else {
        for (int place = 0; place < 3; place++)
            plan->steps[plan->streams + place].arguments[0] = test->streams[place];
        pid = executed(plan);
    }
    if (pid <= 0)
        return pid < 0 && tests->link >= 0 ? -1 : -2;
    test->pid = (int)pid;
    test->ended = syscall(SYS_pidfd_open, pid, 0L);
    struct pollfd either[2] = {{(int)test->ended, POLLIN, 0}, {(int)tests->control, 0, 0}};
    if (test->ended < 0 || poll(either, 2, (int)tests->tick_ms) < 0)
        return -2;
    test->wall_us = now_us() - start;
    if (either[1].revents)
        return -1;
    if (!either[0].revents)
        return 0;
    struct rusage used;
    int status;
    if (wait4((pid_t)pid, &status, 0, &used) != pid)
        return -2;
    test->status = status;
    close((int)test->ended);
    test->cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    test->peak_kb = used.ru_maxrss;
    for (int place = 0; place < 2; place++) {
        struct stat written;
        if (fstat(test->streams[1 + place], &written) < 0)
            return -2;
        test->sizes[place] = written.st_size;
    }
    return 1;
}

/* Returns whether a folder has no entries but itself and its parent, which fill the buffer with 24 bytes each: a third
   entry is left for the second call, or is too long for the first. Its mode and times are reset if it is this user's;
   else they cannot have changed. */
static int empty(const char *folder) {
    long room[6];
    int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long first = syscall(SYS_getdents64, opened, room, sizeof room);
    long rest = syscall(SYS_getdents64, opened, room, sizeof room);
    static const struct timespec before[2];
    if (fchmod(opened, 0700) == 0)
        (void)futimens(opened, before);
    close(opened);
    return first == sizeof room && rest == 0;
}

/* Runs tests one after another, until one has not simply succeeded, or the time is over. Returns the result of `tried`
   for the last one; ``started`` is the number of tests started. */
long ran(const struct plan *plan, const struct tests *tests, struct test *each, long count, long *started) {
    long until = now_us() + tests->ahead_us, state = -2;
    for (*started = 0; *started < count;) {
        struct test *test = &each[(*started)++];
        state = tried(plan, tests, test);
        if (state != 1 || test->status || test->sizes[0] >= tests->ahead_bytes || test->sizes[1] >= tests->ahead_bytes ||
            !empty(tests->folder) || now_us() > until)
            break;
    }
    return state;
}

/* If a slot has no /dev/shm of its own, this library is loaded before the C library, so that `multiprocessing` puts its
   semaphores in memory that forks share (it never opens one by name again), and its buffers in the program's folder, as
   /dev/shm seems full. */

sem_t *sem_open(const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    va_arg(more, mode_t);
    unsigned value = va_arg(more, unsigned);
    va_end(more);
    sem_t *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (name == NULL || made == MAP_FAILED || sem_init(made, 1, value) < 0)
        return SEM_FAILED;
    return made;
}

int sem_close(sem_t *made) { return munmap(made, sizeof *made); }

int sem_unlink(const char *name) { return name == NULL; }

int statvfs(const char *path, struct statvfs *state) {
    int opened = open(path, O_PATH | O_CLOEXEC);
    int result = opened < 0 ? -1 : fstatvfs(opened, state);
    close(opened);
    if (result == 0 && strcmp(path, "/dev/shm") == 0)
        state->f_bfree = state->f_bavail = 0;
    return result;
}

/* The same under its other name; all machines here have 64 bits. */
int of_large_files(const char *, struct statvfs *) __asm__("statvfs64") __attribute__((alias("statvfs")));
