# ruff: noqa: E501  programs stand on one line each
"""More styles of C++ programs: files, modes, clocks, threads and processes. Data only, as `cpp_styles`."""

from __future__ import annotations

HEAD = "#include <bits/stdc++.h>\n#include <fcntl.h>\n#include <poll.h>\n#include <sys/epoll.h>\n#include <sys/file.h>\n#include <sys/mman.h>\n#include <sys/resource.h>\n#include <sys/stat.h>\n#include <sys/time.h>\n#include <sys/wait.h>\n#include <unistd.h>\nusing namespace std;\nnamespace fs = std::filesystem;\n"
A_FILE = 'ofstream("a") << "text"; '


def _main(body: str) -> tuple[str, str, str]:
    return HEAD + "int main() { " + body + " }", "", "20"


CPP_SYSTEM_STYLES: dict[str, tuple[str, str, str]] = {
    "fs::copy": _main(A_FILE + 'fs::copy("a", "b"); fs::copy_file("a", "b", fs::copy_options::overwrite_existing); cout << fs::file_size("b") << fs::exists("c");'),
    "fs::copy of a folder": _main('fs::create_directories("a/b"); ofstream("a/b/c") << 1; fs::copy("a", "z", fs::copy_options::recursive); set<string> s; for (auto &e : fs::recursive_directory_iterator("z")) s.insert(e.path()); for (auto &x : s) cout << x << " "; cout << fs::remove_all("a");'),
    "fs::permissions": _main(A_FILE + 'fs::permissions("a", fs::perms::owner_read); cout << oct << (int)fs::status("a").permissions(); fs::permissions("a", fs::perms::group_exec, fs::perm_options::add); cout << (int)fs::status("a").permissions();'),
    "chmod and fchmod": _main(A_FILE + 'chmod("a", 0640); struct stat s; stat("a", &s); cout << oct << s.st_mode; int f = open("a", O_RDWR); cout << fchmod(f, 0600) << fchmodat(AT_FDCWD, "a", 0604, 0); fstat(f, &s); cout << s.st_mode;'),
    "fs::last_write_time": _main(A_FILE + 'auto t = fs::last_write_time("a"); fs::last_write_time("a", t - 10h); cout << (t - fs::last_write_time("a") == 10h);'),
    "utimes and futimens": _main(A_FILE + 'timeval t[2] = {{1, 0}, {2, 0}}; cout << utimes("a", t); struct stat s; stat("a", &s); cout << s.st_mtime; int f = open("a", O_RDWR); cout << futimens(f, 0);'),
    "links of all kinds": _main(A_FILE + 'fs::create_hard_link("a", "b"); fs::create_symlink("a", "c"); fs::create_directory("d"); fs::create_directory_symlink("d", "e"); cout << fs::hard_link_count("a") << fs::read_symlink("c") << fs::equivalent("b", "c") << fs::is_symlink("e") << fs::canonical("c").filename();'),
    "fs::space and temporary folder": _main('cout << (fs::space(".").free > 0) << fs::is_directory(fs::temp_directory_path()) << fs::absolute("x").filename() << fs::relative("a/b", "a");'),
    "resize and rename": _main(A_FILE + 'fs::resize_file("a", 2); fs::rename("a", "b"); cout << fs::file_size("b") << fs::remove("b") << fs::is_empty(".");'),
    "mkstemp": _main('char n[] = "xXXXXXX"; int f = mkstemp(n); struct stat s; fstat(f, &s); cout << (f > 2) << oct << s.st_mode << unlink(n); char d[] = "dXXXXXX"; cout << (mkdtemp(d) != 0);'),
    "mkfifo": _main('mkfifo("p", 0600); thread t([] { ofstream("p") << "x"; }); string s; ifstream("p") >> s; t.join(); cout << s;'),
    "fallocate and truncate": _main('int f = open("a", O_RDWR | O_CREAT, 0644); cout << posix_fallocate(f, 0, 100) << lseek(f, 0, SEEK_END) << ftruncate(f, 5) << truncate("a", 3) << lseek(f, 0, SEEK_END);'),
    "locks": _main('int f = open("a", O_RDWR | O_CREAT, 0644); struct flock l = {F_WRLCK, SEEK_SET, 0, 0, 0}; cout << flock(f, LOCK_EX) << fcntl(f, F_SETLK, &l) << lockf(f, F_TEST, 0);'),
    "mmap of a file": _main(A_FILE + 'int f = open("a", O_RDWR); char *p = (char *)mmap(0, 4, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0); p[0] = 84; msync(p, 4, MS_SYNC); munmap(p, 4); string s; ifstream("a") >> s; cout << s;'),
    "a mapping that is executed": _main("void *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); cout << (p != MAP_FAILED) << mprotect(p, 4096, PROT_READ);"),
    "pread, writev, dup": _main('int f = open("a", O_RDWR | O_CREAT, 0644); cout << pwrite(f, "abc", 3, 2) << lseek(f, 0, SEEK_SET); char b[9] = {}; cout << pread(f, b, 3, 2) << b << (dup(f) > 0) << (fcntl(f, F_DUPFD_CLOEXEC, 20) >= 20) << isatty(0);'),
    "opendir by hand": (HEAD.replace("using", "#include <dirent.h>\nusing", 1) + 'int main() { ofstream("a") << 1; int n = 0; DIR *d = opendir("."); for (; readdir(d); n++); closedir(d); cout << n << access("a", R_OK) << access("b", F_OK); }', "", "20"),
    "getrusage and limits": (HEAD.replace("using", "#include <sys/times.h>\nusing", 1) + 'int main() { rusage u; rlimit l; struct tms t; cout << getrusage(RUSAGE_SELF, &u) << (u.ru_maxrss > 0) << getrlimit(RLIMIT_NOFILE, &l) << setrlimit(RLIMIT_NOFILE, &l) << (clock() >= 0) << (times(&t) != -1); }', "", "20"),
    "clocks": _main('timespec t; for (int c : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_BOOTTIME}) cout << clock_gettime(c, &t); timeval v; cout << gettimeofday(&v, 0); time_t z = 0; cout << asctime(gmtime(&z)) << put_time(localtime(&z), "%F");'),
    "interval timers": _main("static volatile int n = 0; signal(SIGALRM, [](int) { n = n + 1; }); itimerval i = {{0, 10000}, {0, 10000}}; setitimer(ITIMER_REAL, &i, 0); while (n < 3) pause(); cout << \"rang\";"),
    "sigaction": _main('struct sigaction a = {}; a.sa_sigaction = [](int, siginfo_t *i, void *) { cout << i->si_signo << (i->si_pid == getpid()); }; a.sa_flags = SA_SIGINFO; sigaction(SIGUSR1, &a, 0); kill(getpid(), SIGUSR1); sigset_t s; sigemptyset(&s); cout << sigpending(&s);'),
    "a handler on a stack of its own": _main('stack_t k = {malloc(1 << 16), 0, 1 << 16}; sigaltstack(&k, 0); struct sigaction a = {}; a.sa_handler = [](int) { (void)!write(1, "caught", 6); _exit(3); }; a.sa_flags = SA_ONSTACK; sigaction(SIGSEGV, &a, 0); *(volatile int *)0 = 1;'),
    "threads with promises": _main('promise<int> p; auto f = p.get_future(); jthread t([&] { p.set_value(5); }); cout << f.get(); packaged_task<int()> k([] { return 7; }); auto g = k.get_future(); jthread(move(k)).join(); cout << g.get(); cout << (thread::hardware_concurrency() > 0);'),
    "semaphores, latches, barriers": _main("counting_semaphore<9> s(0); latch l(3); barrier b(3); atomic<int> n{0}; vector<jthread> t; for (int i = 0; i < 3; i++) t.emplace_back([&] { b.arrive_and_wait(); n++; l.count_down(); s.release(); }); l.wait(); for (int i = 0; i < 3; i++) s.acquire(); cout << n;"),
    "mutexes and conditions": _main('mutex m; shared_mutex r; condition_variable c; bool ready = false; thread t([&] { unique_lock l(m); c.wait(l, [&] { return ready; }); shared_lock k(r); cout << "woken"; }); { lock_guard g(m); ready = true; } c.notify_all(); t.join(); once_flag o; call_once(o, [] { cout << 1; }); timed_mutex q; cout << q.try_lock_for(1ms);'),
    "a thread that throws": _main('auto f = async(launch::async, [] { throw runtime_error("no"); return 1; }); try { f.get(); } catch (exception &e) { cout << e.what(); }'),
    "a thread that ends all": _main('cout << "x" << flush; thread t([] { throw 1; }); t.join();'),
    "poll and epoll": _main('int p[2]; cout << pipe2(p, O_CLOEXEC); (void)!write(p[1], "x", 1); pollfd f = {p[0], POLLIN, 0}; cout << poll(&f, 1, 100); int e = epoll_create1(0); epoll_event v = {EPOLLIN, {}}; epoll_ctl(e, EPOLL_CTL_ADD, p[0], &v); cout << epoll_wait(e, &v, 1, 100); fd_set s; FD_ZERO(&s); FD_SET(p[0], &s); cout << select(p[0] + 1, &s, 0, 0, 0);'),
    "pipe and fork": _main('int p[2]; (void)!pipe(p); if (!fork()) { (void)!write(p[1], "child", 5); _exit(4); } int s; wait(&s); char b[9] = {}; (void)!read(p[0], b, 5); cout << b << WEXITSTATUS(s);'),
    "a child stopped by its parent": _main('pid_t c = fork(); if (!c) for (;;) pause(); kill(c, SIGKILL); int s; cout << (waitpid(c, &s, 0) == c) << WTERMSIG(s);'),
    "ten children": _main("for (int i = 0; i < 10; i++) if (!fork()) _exit(i); int n = 0, s; while (wait(&s) > 0) n += WEXITSTATUS(s); cout << n;"),
    "vfork": _main('pid_t c = vfork(); if (!c) _exit(6); int s; waitpid(c, &s, 0); cout << WEXITSTATUS(s);'),
    "system and popen": _main('cout << (system("exit 3") != 0);'),
    "the environment": _main('setenv("X", "1", 1); cout << getenv("X") << (getenv("HOME") != 0) << (getpid() > 0) << (getuid() >= 0);'),
    "locales": _main('cout << (setlocale(LC_ALL, "C.UTF-8") != 0); try { locale l("xx"); } catch (runtime_error &) { cout << "none"; } cout.imbue(locale("C")); cout << 1234567 << fixed << setprecision(2) << 1.5;'),
    "a memory resource": _main("char b[999]; pmr::monotonic_buffer_resource r(b, 999); pmr::vector<int> v(&r); for (int i = 0; i < 9; i++) v.push_back(i); cout << accumulate(v.begin(), v.end(), 0);"),
    "too much memory asked": _main('try { vector<char> v(1L << 46); } catch (bad_alloc &) { cout << "no"; } cout << (malloc(1L << 46) == 0);'),
    "getline of C and open_memstream": _main('char *b = 0; size_t n; FILE *f = open_memstream(&b, &n); fprintf(f, "a%d", 5); fclose(f); cout << b << n; char *l = 0; size_t k = 0; cout << getline(&l, &k, stdin);'),
    "setvbuf and fcntl": _main('setvbuf(stdout, 0, _IONBF, 0); printf("x"); cout << fcntl(0, F_GETFL) << fcntl(0, F_GETFD) << (fileno(stdin) == 0) << (feof(stdin) == 0);'),
    "regex and format of streams": (HEAD + 'int main() { smatch m; string s = "a1b22"; regex_search(s, m, regex("[0-9]{2}")); cout << m[0] << hex << 255 << quoted("x") << setw(5) << setfill(\'0\') << 7; stringstream t("1,2"); char c; int a, b; t >> a >> c >> b; cout << a + b; }', "", "20"),
}  # fmt: skip
"""Name → program, its input, and the standard that it is built by outside."""
