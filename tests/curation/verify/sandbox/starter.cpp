// Attacks on the thread that starts binaries, for `test_attacks_starter`; the first word of the input names one.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
using word = unsigned long;
const long VFORK = CLONE_VM | CLONE_VFORK | SIGCHLD;
alignas(64) char stack[1 << 16];
int child(void *) { _exit(0); }
long started(long flags, word guess) {
    return clone(child, stack + sizeof stack, flags, nullptr, nullptr, (void *)guess, (void *)guess); }

void is_the_number() {
    word n; std::cin >> n;
    std::cout << (started(VFORK, n) > 0) << (started(VFORK, n ^ 1) > 0);
}

void guesses() {
    word number, tried = 0; std::cin >> number; number = ~number;
    auto at = [&](long flags, word guess) {
        tried++;
        if (started(flags, guess) > 0) { std::cout << "STARTED " << flags << " " << guess << "\n"; exit(1); } };
    for (word guess : {0ul, ~0ul, 0x7EADBEEF7EADBEEFul, 0x7EADBEF17EADBEF0ul}) at(VFORK, guess);
    for (word guess : {number ^ 1, number << 32 >> 32, number >> 32 << 32}) at(VFORK, guess);
    for (int bit = 0; bit < 32; bit++) if (bit != 16) at(VFORK ^ 1L << bit, number);
    std::mt19937_64 dice(std::random_device{}());
    for (int i = 0; i < 300000; i++) at(VFORK, dice());
    if (fork() > 0 || syscall(SYS_vfork) > 0) std::cout << "STARTED\n";
    if (!prctl(PR_SET_PDEATHSIG, 0) || !prctl(PR_SET_PDEATHSIG, SIGTERM) || !prctl(PR_SET_DUMPABLE, 0) || setsid() > 0)
        std::cout << "CHANGED\n";
    std::ifstream maps("/proc/self/maps"); std::string line; word found = 0, words = 0;
    while (std::getline(maps, line)) {
        word from, to; char readable; sscanf(line.c_str(), "%lx-%lx %c", &from, &to, &readable);
        if (readable != 'r' || line.find("[v") != line.npos || to - from > 1 << 26) continue;
        for (word place = from; place + 8 <= to; place += 4, words++) {
            word value; memcpy(&value, (void *)place, 8);
            if (value == number && place != (word)&number && place != (word)&value) found++; } }
    std::cout << "refused " << tried << " found " << found << " of " << (words > 100000) << "\n";
}

void signals() {
    pid_t main, thread, own = getpid(); std::cin >> main >> thread;
    auto reached = [&](pid_t n) {
        rlimit limit{1, 1}; cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);
        return !syscall(SYS_prlimit64, n, RLIMIT_CPU, nullptr, &limit) ||
               !syscall(SYS_sched_setaffinity, n, sizeof one, &one) || !kill(n, 0) || !syscall(SYS_tkill, n, 0) ||
               !syscall(SYS_tgkill, main, n, 0) || !syscall(SYS_tgkill, n, thread, 0); };
    for (pid_t n : {main, thread, -main, -thread, -1})
        if (reached(n)) std::cout << "REACHED " << n << "\n";
    for (pid_t n = 1; n < 40000; n++)
        if (n != own && reached(n)) std::cout << "REACHED " << n << "\n";
    if (kill(own, 0) || syscall(SYS_tgkill, own, own, 0)) std::cout << "not its own\n";
    std::cout << "refused\n";
}

int main() {
    std::string way; std::cin >> way;
    if (way == "is_the_number") is_the_number(); else if (way == "guesses") guesses(); else signals();
}
