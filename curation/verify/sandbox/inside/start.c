/* Starts programs: a new process, then a list of system calls that Python made ready, run one after another in it; and
   the next program, as long as nobody needs to look at what became of the last.

   No verdict is found here: which calls, in which order and with which arguments is said in confinement.py, whose
   structures these are. Compiled because an interpreter that runs between fork and program writes to some 150 pages,
   each of which is copied, because one that runs between two programs is slow with cold caches, and because a program
   that is executed needs no copy of its parent's memory at all.

   Invariants: the child runs nothing but these calls until they are all done; one that fails is named on the report
   descriptor and ends the child with the status that means "no foreign code has run". */

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
    uint32_t **marks; /* places in the filter that want the number of the new process */
    long marked;
    long report;
    long failed;
    long flags;                      /* of clone(2), for what is forked */
    long link;                       /* where requests come from */
    void *(*become)(void *);         /* PyObject_CallNoArgs */
    void *run;                       /* what it calls in the new process, and does not return from */
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
    long link; /* to who forks, or -1 where a program is executed from here */
    long control;
    long tick_ms;
    long ahead_us, ahead_bytes;
    const char *folder; /* which a test must leave empty */
};

struct test {
    int streams[3];
    int pid;
    long ended; /* a descriptor that can be read once the program has ended */
    long status;
    long cpu_us;
    long wall_us;
    long peak_kb;
    long sizes[2]; /* of what it wrote to 1 and 2 */
};

/* A request: a byte, with three descriptors. */
struct parcel {
    char byte;
    struct iovec words;
    union {
        char room[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr head;
    } beside;
    struct msghdr message;
};

static struct msghdr *parcel(struct parcel *made) {
    made->words = (struct iovec){&made->byte, 1};
    made->beside.head = (struct cmsghdr){CMSG_LEN(3 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    made->message = (struct msghdr){.msg_iov = &made->words, .msg_iovlen = 1};
    made->message.msg_control = &made->beside;
    made->message.msg_controllen = sizeof made->beside;
    return &made->message;
}

/* As fork(2): 0 in the child, once the calls are done; -1 where there is none. */
long forked(const struct plan *plan) {
    long pid = syscall(SYS_clone, plan->flags | SIGCHLD, 0L, 0L, 0L, 0L);
    if (pid == 0)
        run((void *)plan);
    return pid;
}

/* A fork per request: three descriptors come over ``link``; the answer is the number of the new process, which runs the
   interpreter from here: going back through the frames that led here would write to some 30 pages more. Returns 0 at the
   end of the link, -1 on an error. This process writes to three pages only meanwhile: what it shares with its forks stays
   shared. */
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

/* As vfork(2) for calls the last of which is exec: the child borrows this process's memory until then. */
static long executed(const struct plan *plan) {
    static char stack[1 << 16] __attribute__((aligned(64)));
    return clone(run, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)plan);
}

/* The number of the process that the forking one makes on this request; 0 where it has died, -1 where the judge has. */
static long asked(const struct tests *tests, const struct test *test) {
    struct parcel sent;
    parcel(&sent);
    sent.byte = '.';
    memcpy(CMSG_DATA(&sent.beside.head), test->streams, sizeof test->streams);
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

/* A test from its start to its end, if that comes before the first tick: then 1. 0 where it still runs, -1 where the
   judge is gone, -2 where no process could be made. */
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

/* Whether nothing lies in it but itself and its parent, whose entries fill the room of 24 bytes each: of three entries one
   is left for the second call, or is too long for the first. Its mode and times become what they were, where it is this
   user's; else they cannot be changed. */
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

/* Tests one after another, until one of them is not plainly done with, or so much time has passed. Returns what
   became of the last one that was started, as `tried` says it; how many were goes to ``started``. */
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

/* Where nothing of a slot's own lies at /dev/shm, this library is loaded before the C library, and `multiprocessing`
   finds what it wants elsewhere: its semaphores in memory that forks share (it never opens one by name again), its
   buffers, where /dev/shm has no room, in the program's folder. */

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

/* The same by its other name; all machines here have 64 bits. */
int of_large_files(const char *, struct statvfs *) __asm__("statvfs64") __attribute__((alias("statvfs")));
