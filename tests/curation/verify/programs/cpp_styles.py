# ruff: noqa: E501  programs stand on one line each
"""Styles of C++ programs, each with one input: new and old standards, all ways of reading, what contestants lean on.

Data only: `test_differential.py` runs each bare and in every box, and compares. ``standard``: what g++ is told when
the bare one is built.
"""

from __future__ import annotations

NUMBERS = "5\n3 1 4 1 5\n"
HEAD = "#include <bits/stdc++.h>\nusing namespace std;\n"

CPP_STYLES: dict[str, tuple[str, str, str]] = {
    "cin and cout": (HEAD + "int main() { int n, a, s = 0; cin >> n; while (n--) { cin >> a; s += a; } cout << s << endl; }", NUMBERS, "20"),
    "untied streams": (
        HEAD + "int main() { ios_base::sync_with_stdio(0); cin.tie(0); int n; cin >> n; vector<int> a(n); "
        "for (auto &x : a) cin >> x; sort(a.rbegin(), a.rend()); for (int x : a) cout << x << '\\n'; }",
        NUMBERS,
        "20",
    ),
    "scanf and printf": ('#include <cstdio>\nint main() { int n, a; scanf("%d", &n); while (n--) { scanf("%d", &a); printf("%d ", a); } return 0; }', NUMBERS, "20"),
    "getchar_unlocked": (
        HEAD + "int readInt() { int c = getchar_unlocked(), x = 0; while (c < '0') c = getchar_unlocked(); "
        "while (c >= '0') { x = 10 * x + c - '0'; c = getchar_unlocked(); } return x; }\n"
        "int main() { int n = readInt(), s = 0; while (n--) s += readInt(); printf(\"%d\\n\", s); }",
        NUMBERS,
        "20",
    ),
    "fread of a buffer": (
        HEAD + "static char buf[1 << 20]; int main() { size_t k = fread(buf, 1, sizeof buf, stdin); fwrite(buf, 1, k, stdout); }",
        NUMBERS,
        "20",
    ),
    "mmap of the input": (
        "#include <sys/mman.h>\n#include <sys/stat.h>\n#include <cstdio>\nint main() { struct stat s; fstat(0, &s); "
        'char *p = (char*)mmap(0, s.st_size, PROT_READ, MAP_PRIVATE, 0, 0); printf("%.*s", (int)s.st_size, p); }',
        NUMBERS,
        "20",
    ),
    "getline until the end": (HEAD + 'int main() { string l; while (getline(cin, l)) cout << "[" << l << "]"; }', NUMBERS, "20"),
    "signed main": (HEAD + "#define int long long\nsigned main() { int n, a, s = 0; cin >> n; while (cin >> a) s += a * a; cout << s; return 0; }", NUMBERS, "20"),
    "a pragma of the optimiser": (
        '#pragma GCC optimize("O3,unroll-loops")\n#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")\n' + HEAD
        + "int main() { int n; cin >> n; cout << __builtin_popcount(n); }",
        NUMBERS,
        "20",
    ),
    "policy trees": (
        "#include <ext/pb_ds/assoc_container.hpp>\n#include <ext/pb_ds/tree_policy.hpp>\n#include <iostream>\n"
        "using namespace __gnu_pbds; typedef tree<int, null_type, std::less<int>, rb_tree_tag, tree_order_statistics_node_update> T;\n"
        "int main() { T t; t.insert(3); t.insert(1); std::cout << *t.find_by_order(1) << t.order_of_key(3); }",
        "",
        "20",
    ),
    "ranges and concepts": (
        HEAD + "template <class T> concept N = is_integral_v<T>; template <N T> T twice(T a) { return 2 * a; }\n"
        "int main() { vector<int> v{3, 1, 2}; ranges::sort(v); for (int a : v | views::transform(twice<int>)) cout << a; }",
        "",
        "20",
    ),
    "a global array named size": (
        HEAD + "int size[10], data[10], rank[10], prev[10], next[10];\nint main() { size[1] = 2; data[2] = 3; rank[3] = 4; prev[1] = next[1] = 1; "
        "cout << size[1] + data[2] + rank[3] + prev[1] + next[1]; }",
        "",
        "98",
    ),
    "globals named data and size only": (
        HEAD + "int size = 4; vector<int> data;\nint main() { data.push_back(size); cout << data[0]; }",
        "",
        "14",
    ),
    "globals named ranges and lerp": ("#include <cstdio>\n#include <algorithm>\nusing namespace std;\nint ranges = 3; int lerp = 4;\nint main() { printf(\"%d\", ranges + lerp); }", "", "17"),
    "throw specifications": (
        HEAD + "struct E {}; int f(int a) throw(E) { if (a > 3) throw E(); return a; }\nint main() { try { f(5); } catch (E&) { cout << \"caught\"; } }",
        "",
        "14",
    ),
    "gets": ("#include <cstdio>\nextern \"C\" char *gets(char *);\nint main() { char b[99]; while (gets(b)) puts(b); }", NUMBERS, "11"),
    "gets of the old header": ("#include <cstdio>\nint main() { char b[99]; while (gets(b)) puts(b); }", NUMBERS, "11"),
    "register and bind2nd": (
        HEAD + "int main() { register int n = 3; vector<int> v(5, n); cout << count_if(v.begin(), v.end(), bind2nd(greater<int>(), 2)); }",
        "",
        "14",
    ),
    "auto_ptr and random_shuffle": (
        HEAD + "int main() { auto_ptr<int> p(new int(3)); vector<int> v(4, *p); random_shuffle(v.begin(), v.end()); cout << v[2]; }",
        "",
        "14",
    ),
    "or a byte": (HEAD + "typedef unsigned char byte;\nint main() { byte b = 7; cout << (int)b; }", "", "14"),
    "a template argument list spaced": ("#include <map>\n#include <vector>\n#include <cstdio>\nint main() { std::map<int, std::vector<int> > m; m[1].push_back(2); printf(\"%d\", m[1][0]); }", "", "20"),
    "C headers": ("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\nint cmp(const void*a,const void*b){return *(int*)a-*(int*)b;}\n"
                  "int main() { int a[3] = {3,1,2}; qsort(a,3,sizeof(int),cmp); printf(\"%d%d%d %d %.2f\", a[0],a[1],a[2],(int)strlen(\"abc\"),sqrt(2.0)); return 0; }", "", "20"),
    "designated initialisers and VLAs": (HEAD + "struct P { int x, y; }; int main() { int n; cin >> n; int a[n]; a[n - 1] = 4; P p{.x = 1, .y = 2}; cout << a[n - 1] + p.y; }", NUMBERS, "20"),
    "nested functions by lambda": (HEAD + "int main() { function<int(int)> f = [&](int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }; cout << f(20); }", "", "20"),
    "deep recursion": ("#include <cstdio>\nint f(int n) { volatile int a[8] = {n}; return n == 0 ? 0 : f(n - 1) + (a[0] != n) + 1; }\nint main() { printf(\"%d\", f(50000)); }", "", "20"),
    "recursion of 300 MB": ("#include <cstdio>\nint f(int n) { volatile char a[3072] = {1}; return n == 0 ? 0 : f(n - 1) + a[0]; }\nint main() { printf(\"%d\", f(100000)); }", "", "20"),
    "a big array on the stack": (HEAD + "int main() { int a[20000000]; for (int i = 0; i < 20000000; i += 1000) a[i] = i; cout << a[19999000]; }", "", "20"),
    "a big global array": (HEAD + "int a[50000000]; int main() { a[49999999] = 3; cout << a[49999999]; }", "", "20"),
    "setrlimit for the stack": (
        "#include <sys/resource.h>\n#include <cstdio>\nint main() { struct rlimit r; getrlimit(RLIMIT_STACK, &r); r.rlim_cur = r.rlim_max; "
        'setrlimit(RLIMIT_STACK, &r); printf("ok"); }',
        "",
        "20",
    ),
    "threads": (HEAD + "int main() { atomic<int> s{0}; vector<thread> t; for (int i = 0; i < 4; i++) t.emplace_back([&, i] { s += i; }); for (auto &x : t) x.join(); cout << s; }", "", "20"),
    "64 threads at once": (HEAD + "int main() { atomic<int> n{0}; vector<thread> t; for (int i = 0; i < 64; i++) t.emplace_back([&] { n++; while (n < 64) this_thread::yield(); vector<int> v(1000, 1); n += v[9]; }); for (auto &x : t) x.join(); cout << n; }", "", "20"),
    "async and futures": (HEAD + "int main() { auto f = async(launch::async, [] { return 6 * 7; }); cout << f.get(); }", "", "20"),
    "parallel sums by OpenMP words": (HEAD + "int main() { long s = 0;\n#pragma omp parallel for reduction(+:s)\nfor (int i = 0; i < 1000; i++) s += i; cout << s; }", "", "20"),
    "fork and wait": (
        "#include <unistd.h>\n#include <sys/wait.h>\n#include <cstdio>\nint main() { int p = fork(); if (p == 0) _exit(3); int s; waitpid(p, &s, 0); "
        'printf("%d", WEXITSTATUS(s)); }',
        "",
        "20",
    ),
    "clocks and chrono": (HEAD + "int main() { auto t = chrono::steady_clock::now(); this_thread::sleep_for(chrono::milliseconds(5)); cout << (chrono::steady_clock::now() - t >= 5ms) << (clock() >= 0); }", "", "20"),
    "mt19937 and rand": (HEAD + "int main() { mt19937 r(5); srand(3); int a = rand(); srand(3); cout << r() << (a == rand()); }", "", "20"),
    "a random device": (HEAD + "int main() { random_device d; cout << (d() >= 0); }", "", "20"),
    "a file written and read": (HEAD + 'int main() { { ofstream f("a.txt"); f << 42; } int a = 0; ifstream("a.txt") >> a; cout << a; remove("a.txt"); }', "", "20"),
    "freopen": (HEAD + 'int main() { { ofstream f("in.txt"); f << "3 4"; } freopen("in.txt", "r", stdin); int a, b; cin >> a >> b; cout << a + b; }', "", "20"),
    "tmpfile": ("#include <cstdio>\nint main() { FILE *f = tmpfile(); if (!f) return 3; fputs(\"x\", f); rewind(f); printf(\"%c\", fgetc(f)); }", "", "20"),
    "128 bits": (HEAD + "int main() { __int128 a = (__int128)1 << 100; cout << (long long)(a >> 90); }", "", "20"),
    "long doubles": ("#include <cstdio>\n#include <cmath>\nint main() { printf(\"%.15Lf %.10f\", sqrtl(2.0L), sin(1.0)); }", "", "20"),
    "bitsets and strings": (HEAD + 'int main() { bitset<70> b(5); b <<= 60; cout << b.count() << string(3, \'x\') << to_string(7) << stoll("99"); }', "", "20"),
    "an assertion that fails": ("#include <cassert>\n#include <cstdio>\nint main() { puts(\"x\"); fflush(stdout); assert(1 == 2); }", "", "20"),
    "an exception nobody catches": (HEAD + 'int main() { vector<int> v(3); cout << v.at(7); }', "", "20"),
    "a null pointer": ("int main() { volatile int *p = 0; return *p; }", "", "20"),
    "a division by zero": ("#include <cstdio>\nint main() { volatile int z = 0; printf(\"%d\", 1 / z); }", "", "20"),
    "abort": ("#include <cstdlib>\nint main() { abort(); }", "", "20"),
    "endless recursion": ("int f(volatile int n) { volatile int a[99]; a[0] = n; return f(n + 1) + a[0]; }\nint main() { return f(0); }", "", "20"),
    "an exit code": ("int main() { return 3; }", "", "20"),
    "main without return": ("#include <iostream>\nint main() { std::cout << 1; }", "", "20"),
    "quick_exit and atexit": (HEAD + 'void bye() { cout << "bye"; } int main() { atexit(bye); cout << "x"; exit(0); }', "", "20"),
    "signals": ("#include <csignal>\n#include <cstdio>\nvoid h(int) { puts(\"got\"); }\nint main() { signal(SIGUSR1, h); raise(SIGUSR1); }", "", "20"),
    "does not compile": ("int main() { return missing; }", "", "20"),
    "modern only": (HEAD + "#include <concepts>\nint main() { auto f = []<class T>(T a) { return a <=> T{}; }; cout << (f(3) > 0); }", "", "20"),
    "inline assembly": ('#include <cstdio>\nint main() { long a = 3; asm("add %0, %0" : "+r"(a)); printf("%ld", a); }', "", "20"),
    "wide characters": ("#include <clocale>\n#include <cwchar>\n#include <cstdio>\nint main() { setlocale(LC_ALL, \"\"); printf(\"%d\", (int)wcslen(L\"abc\")); }", "", "20"),
    "argc": ("#include <cstdio>\nint main(int n, char **) { printf(\"%d\", n); }", "", "20"),
    "globals of before C++11": (HEAD + 'int size, data, rank; int main() { size = 1; data = 2; rank = 3; cout << size + data + rank; }', "", "98"),
    "coroutines": (
        "#include <coroutine>\n#include <cstdio>\nstruct G { struct promise_type { int v; G get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; } "
        "std::suspend_always initial_suspend() { return {}; } std::suspend_always final_suspend() noexcept { return {}; } "
        "std::suspend_always yield_value(int a) { v = a; return {}; } void return_void() {} void unhandled_exception() {} }; std::coroutine_handle<promise_type> h; };\n"
        "G f() { for (int i = 0; i < 3; i++) co_yield i; }\nint main() { auto g = f(); for (g.h.resume(); !g.h.done(); g.h.resume()) printf(\"%d\", g.h.promise().v); }",
        "",
        "20",
    ),
}  # fmt: skip
