# ruff: noqa: E501  programs stand on one line each
"""Styles of Python programs, each with one input: how contestants, data sets and models really write.

Data only: `test_differential.py` runs each with a bare interpreter and in every box, and compares.
"""

from __future__ import annotations

NUMBERS = "5\n3 1 4 1 5\n"

FAST_IO = """
import os, sys
from io import BytesIO, IOBase
BUFSIZE = 8192
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def read(self):
        while True:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            if not b:
                break
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines = 0
        return self.buffer.read()
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.read = lambda: self.buffer.read().decode("ascii")
        self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\\r\\n")
n = int(input())
print(n, sum(map(int, input().split())))
"""

BOOTSTRAP = """
from types import GeneratorType
def bootstrap(f, stack=[]):
    def wrapped(*args, **kwargs):
        if stack:
            return f(*args, **kwargs)
        to = f(*args, **kwargs)
        while True:
            if type(to) is GeneratorType:
                stack.append(to)
                to = next(to)
            else:
                stack.pop()
                if not stack:
                    break
                to = stack[-1].send(to)
        return to
    return wrapped
@bootstrap
def depth(n):
    yield 0 if n == 0 else (yield depth(n - 1)) + 1
print(depth(50000))
"""

PYTHON_STYLES: dict[str, tuple[str, str]] = {
    "the fast-input template": (FAST_IO, NUMBERS),
    "the fast-input template of one line": (
        "import sys, io, os\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\n"
        "n = int(input())\nsys.stdout.write(str(sum(map(int, input().split()))))",
        NUMBERS,
    ),
    "what the streams say of themselves": (
        "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr):\n"
        "    print(s.mode, s.name, s.encoding, s.errors, s.newlines, s.line_buffering, s.write_through, s.isatty(),\n"
        "          s.fileno(), s.buffer.name, s.buffer.mode, s.buffer.raw.mode, s.readable(), s.writable())",
        "",
    ),
    "line endings as they come": (
        "import sys\nprint(ascii(sys.stdin.readline()), ascii(sys.stdin.read()), sys.stdin.newlines)",
        "one\r\ntwo\rthree\n",
    ),
    "a stream opened again": (
        "import sys, io\nsys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding='ascii')\n"
        "sys.stdout = open(1, 'w', closefd=False)\nprint(input(), input())\nsys.stdout.flush()",
        NUMBERS,
    ),
    "a stream reconfigured": (
        "import sys\nsys.stdout.reconfigure(line_buffering=True, encoding='latin-1')\nprint('\\xe9', input())",
        NUMBERS,
    ),
    "one character at a time": (
        "import sys\ndef token():\n    c = sys.stdin.read(1)\n    while c.isspace(): c = sys.stdin.read(1)\n    s = ''\n"
        "    while c and not c.isspace(): s += c; c = sys.stdin.read(1)\n    return s\n"
        "print(sum(int(token()) for _ in range(int(token()))))",
        NUMBERS,
    ),
    "a map object over all input": (
        "import sys\nit = map(int, sys.stdin.read().split())\nn = next(it)\nprint(sorted(next(it) for _ in range(n)))",
        NUMBERS,
    ),
    "mmap of the input": (
        "import mmap\nm = mmap.mmap(0, 0, access=mmap.ACCESS_READ)\nprint(m.readline(), m.read())",
        NUMBERS,
    ),
    "fileinput": ("import fileinput\nprint([line.strip() for line in fileinput.input()])", NUMBERS),
    "open by the device's name": ("print(open('/dev/stdin').read().split())", NUMBERS),
    "input until it ends": (
        "total = 0\nwhile True:\n    try: line = input()\n    except EOFError: break\n    total += len(line)\nprint(total)",
        NUMBERS,
    ),
    "a prompt": ("n = int(input('how many? '))\nprint(n)", NUMBERS),
    "no newline at the end": ("print(input(), input())", "a\nb"),
    "a program within functions": (
        "import sys\ndef solve(a): return max(a)\ndef main():\n    n, *a = map(int, sys.stdin.read().split())\n"
        "    print(solve(a))\nif __name__ == '__main__':\n    main()",
        NUMBERS,
    ),
    "a class Solution": (
        "from typing import List, Optional\nclass Solution:\n    def run(self, a: List[int]) -> Optional[int]:\n"
        "        return sum(a)\ninput()\nprint(Solution().run(list(map(int, input().split()))))",
        NUMBERS,
    ),
    "recursion behind a raised limit": (
        "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return 0 if n == 0 else f(n - 1) + 1\nprint(f(60000))",
        "",
    ),
    "recursion beyond the limit": (
        "import sys\ndef f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError as e: print(type(e).__name__, e)\n"
        "print(sys.getrecursionlimit())",
        "",
    ),
    "how deep recursion goes": (
        "def f(n):\n    global best\n    best = n\n    f(n + 1)\ntry: f(0)\nexcept RecursionError: pass\nprint(best)",
        "",
    ),
    "a thread with a big stack": (
        "import sys, threading\nsys.setrecursionlimit(1 << 25)\nthreading.stack_size(1 << 27)\n"
        "def f(n): return 0 if n == 0 else max(f(n - 1), n)\ndef main(): print(f(30000))\n"
        "t = threading.Thread(target=main)\nt.start()\nt.join()",
        "",
    ),
    "recursion through C": (
        "import sys\nsys.setrecursionlimit(100000)\n"
        "def f(n): return 0 if n == 0 else max(map(f, [n - 1])) + 1\nprint(f(15000))",
        "",
    ),
    "a recursive generator by bootstrap": (BOOTSTRAP, ""),
    "yield from, deep": (
        "import sys\nsys.setrecursionlimit(20000)\ndef walk(n):\n    if n: yield from walk(n - 1)\n    yield n\n"
        "print(sum(walk(2000)))",
        "",
    ),
    "lru_cache": (
        "import functools, sys\nsys.setrecursionlimit(10**5)\n@functools.lru_cache(maxsize=None)\n"
        "def f(n): return n if n < 2 else (f(n - 1) + f(n - 2)) % 1000007\nprint(f(5000), f.cache_info().misses)",
        "",
    ),
    "threads and a queue": (
        "import threading, queue\nq = queue.Queue()\n"
        "threads = [threading.Thread(target=lambda k=k: q.put(k * k)) for k in range(8)]\n"
        "[t.start() for t in threads]\n[t.join() for t in threads]\nprint(sorted(q.get() for _ in range(8)))",
        "",
    ),
    "a thread that is left to end": (
        "import threading, time\ndef late():\n    threading.main_thread().join()\n    print('late')\n"
        "threading.Thread(target=late).start()\nprint('early')",
        "",
    ),
    "a daemon thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('done')",
        "",
    ),
    "a pool of threads": (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n"
        "    print(sum(pool.map(lambda n: n * n, range(100))))",
        "",
    ),
    "64 threads at once": (
        "import threading\nbarrier = threading.Barrier(64)\nthreads = [threading.Thread(target=barrier.wait) for _ in range(64)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nprint(barrier.broken)",
        "",
    ),
    "a pool of as many threads as a large machine has": (
        "import threading\nfrom concurrent.futures import ThreadPoolExecutor\nbarrier = threading.Barrier(36)\n"
        "with ThreadPoolExecutor(36) as pool: print(sorted(pool.map(lambda n: barrier.wait(), range(36))))",
        "",
    ),
    "finalisers that use the module": (
        "import sys\nlog = []\nclass A:\n    def __init__(self, name): self.name = name\n"
        "    def __del__(self): log.append(self.name); sys.stdout.write(self.name + str(len(log)))\n"
        "a, b = A('a'), [A('b'), A('c')]\nprint('end', flush=True)",
        "",
    ),
    "a finaliser in a circle": (
        "import sys\nclass A:\n    def __del__(self): sys.stdout.write('gone')\na = A()\na.me = a\ndel a\nb = A()\n",
        "",
    ),
    "a finaliser that ends it": (
        "import os\nclass A:\n    def __del__(self): os._exit(4)\na = A()\nprint('ok', flush=True)",
        "",
    ),
    "a generator left in the middle": (
        "import sys\ndef g():\n    try: yield 1\n    finally: sys.stdout.write('closed')\nit = g()\nprint(next(it))",
        "",
    ),
    "an exit code larger than a number of the machine": ("import sys\nsys.exit(10**30)", ""),
    "an exit code of nine bits": ("import sys\nprint('ok')\nsys.exit(256)", ""),
    "an exit code that is true": ("import sys\nsys.exit(True)", ""),
    "standard output closed behind print": ("import os\nprint('lost')\nos.close(1)", ""),
    "standard output detached": ("import sys\nprint('ok', flush=True)\nsys.stdout.detach()", ""),
    "standard output closed": ("import sys\nprint('ok')\nsys.stdout.close()", ""),
    "no standard output": ("import sys\nprint('ok', flush=True)\ndel sys.stdout, sys.__stdout__, sys.stderr", ""),
    "standard output that cannot be flushed": (
        "import sys\nclass Out:\n    def write(self, text): return len(text)\n    def flush(self): raise ValueError\n"
        "print('ok', flush=True)\nsys.stdout = Out()",
        "",
    ),
    "printed where nothing can be written": ("import os\nos.dup2(0, 1)\nprint('lost')", ""),
    "exit functions that fail and exit": (
        "import atexit, sys\natexit.register(lambda: 1 / 0)\natexit.register(lambda: sys.exit(5))\nprint('ok')",
        "",
    ),
    "an exception hook that ends it": ("import os, sys\nsys.excepthook = lambda *a: os._exit(0)\n1 / 0", ""),
    "an exception whose text ends it": (
        "import os\nclass E(Exception):\n    def __str__(self): os._exit(0)\nraise E",
        "",
    ),
    "a program without modules": ("import sys\nsys.modules.clear()\nsys.meta_path.clear()\nprint('ok')", ""),
    "a callback of the collector that ends it": (
        "import gc, os\ngc.callbacks.append(lambda *a: os._exit(9))\ngc.collect()\nprint('ok')",
        "",
    ),
    "a thread that ends it": (
        "import os, threading, time\nthreading.Thread(target=lambda: os._exit(7)).start()\ntime.sleep(60)",
        "",
    ),
    "no limits left": (
        "import resource\nfor r in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE): resource.setrlimit(r, (0, 0))\nprint('lost')",
        "",
    ),
    "locks and conditions": (
        "import threading\nlock, seen = threading.Condition(), []\ndef put():\n    with lock:\n        seen.append(1)\n"
        "        lock.notify_all()\nthreading.Timer(0.01, put).start()\nwith lock:\n"
        "    print(lock.wait_for(lambda: seen, 20), len(seen))",
        "",
    ),
    "asyncio.run": (
        "import asyncio\nasync def square(n):\n    await asyncio.sleep(0.001 * n)\n    return n * n\n"
        "async def main(): print(await asyncio.gather(*(square(n) for n in range(5))))\nasyncio.run(main())",
        "",
    ),
    "asyncio with threads": (
        "import asyncio, time\nasync def main():\n    loop = asyncio.get_running_loop()\n"
        "    print(await asyncio.gather(*(asyncio.to_thread(lambda k=k: k + 1) for k in range(4))))\nasyncio.run(main())",
        "",
    ),
    "asyncio queues and timeouts": (
        "import asyncio\nasync def main():\n    q = asyncio.Queue(1)\n    async def put():\n"
        "        for k in range(5): await q.put(k)\n    task = asyncio.create_task(put())\n"
        "    print([await asyncio.wait_for(q.get(), 20) for _ in range(5)])\n    await task\n"
        "    try: await asyncio.wait_for(asyncio.sleep(60), 0.01)\n    except asyncio.TimeoutError: print('timeout')\n"
        "asyncio.run(main())",
        "",
    ),
    "a pair of sockets": (
        "import socket\na, b = socket.socketpair()\na.sendall(b'hello')\nprint(b.recv(9))\na.close()\nprint(b.recv(9))",
        "",
    ),
    "selectors over a pipe": (
        "import os, selectors\nr, w = os.pipe()\ns = selectors.DefaultSelector()\ns.register(r, selectors.EVENT_READ)\n"
        "os.write(w, b'x')\nprint([key.fd == r for key, _ in s.select(20)])",
        "",
    ),
    "a process of multiprocessing": (
        "from multiprocessing import Process, Pipe\ndef work(end):\n    end.send([n * n for n in range(5)])\n"
        "    end.close()\nif __name__ == '__main__':\n    mine, theirs = Pipe()\n    p = Process(target=work, args=(theirs,))\n"
        "    p.start()\n    print(mine.recv())\n    p.join()\n    print(p.exitcode)",
        "",
    ),
    "a pool of processes": (
        "from multiprocessing import Pool\ndef square(n): return n * n\nif __name__ == '__main__':\n"
        "    with Pool(2) as pool: print(pool.map(square, range(10)))",
        "",
    ),
    "a queue between processes": (
        "import multiprocessing as mp\ndef work(q, lock):\n    with lock: q.put('hello')\nif __name__ == '__main__':\n"
        "    q, lock = mp.Queue(), mp.Lock()\n    p = mp.Process(target=work, args=(q, lock))\n    p.start()\n"
        "    print(q.get())\n    p.join()",
        "",
    ),
    "an executor of processes": (
        "from concurrent.futures import ProcessPoolExecutor\ndef square(n): return n * n\n"
        "if __name__ == '__main__':\n    with ProcessPoolExecutor(2) as pool: print(list(pool.map(square, range(5))))",
        "",
    ),
    "fork and wait": (
        "import os, sys\nr, w = os.pipe()\npid = os.fork()\nif pid == 0:\n    os.write(w, b'child')\n    os._exit(3)\n"
        "print(os.read(r, 9), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        "",
    ),
    "a child that aborts": (
        "import os\npid = os.fork()\nif pid == 0: os.abort()\nprint(os.WTERMSIG(os.waitpid(pid, 0)[1]))",
        "",
    ),
    "a child that is terminated": (
        "import os, signal, time\npid = os.fork()\nif pid == 0: time.sleep(60)\nos.kill(pid, signal.SIGTERM)\n"
        "print(os.WTERMSIG(os.waitpid(pid, 0)[1]))",
        "",
    ),
    "an alarm": (
        "import signal\ndef ring(*_): raise TimeoutError('rang')\nsignal.signal(signal.SIGALRM, ring)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05)\ntry:\n    while True: pass\nexcept TimeoutError as e: print(e)",
        "",
    ),
    "a signal to itself": (
        "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('got it'))\nos.kill(os.getpid(), signal.SIGUSR1)\n"
        "signal.raise_signal(signal.SIGUSR1)",
        "",
    ),
    "a file written and read": (
        "with open('data.txt', 'w') as f: f.write('a b c')\nprint(open('data.txt').read().split())\n"
        "import os\nos.remove('data.txt')\nprint(os.path.exists('data.txt'))",
        "",
    ),
    "temporary files": (
        "import tempfile, os\nwith tempfile.TemporaryFile('w+') as f:\n    f.write('x' * 9)\n    f.seek(0)\n"
        "    print(len(f.read()))\nwith tempfile.NamedTemporaryFile() as f: print(os.path.exists(f.name))\n"
        "with tempfile.TemporaryDirectory() as d:\n    open(os.path.join(d, 'a'), 'w').close()\n    print(os.listdir(d))",
        "",
    ),
    "folders made and walked": (
        "import os, shutil\nos.makedirs('a/b/c')\nopen('a/b/c/file', 'w').write('x')\n"
        "print([(sorted(d), f) for _, d, f in os.walk('a')])\nshutil.rmtree('a')\nprint(os.listdir('.'))",
        "",
    ),
    "input redirected to a file": (
        "import sys\nopen('in.txt', 'w').write('7 8\\n')\nsys.stdin = open('in.txt')\nprint(sum(map(int, input().split())))",
        "",
    ),
    "output into a file given back": (
        "import sys\nsaved = sys.stdout\nsys.stdout = open('out.txt', 'w')\nprint('hidden')\nsys.stdout.close()\n"
        "sys.stdout = saved\nprint(open('out.txt').read().upper())",
        "",
    ),
    "sqlite in memory": (
        "try:\n    import sqlite3\nexcept ImportError: print([6])\nelse:\n    c = sqlite3.connect(':memory:')\n"
        "    c.execute('create table t (n int)')\n    c.executemany('insert into t values (?)', [(1,), (2,), (3,)])\n"
        "    print([c.execute('select sum(n) from t').fetchone()[0]])",
        "",
    ),
    "numpy": (
        "import numpy as np\na = np.array(input().split() + input().split(), dtype=np.int64)\n"
        "print(a.sum(), np.cumsum(a).tolist(), (a @ a).item(), np.linalg.det(np.eye(3)))",
        NUMBERS,
    ),
    "numpy's random and fft": (
        "import numpy as np\nprint(np.random.RandomState(7).randint(100, size=5).tolist(),\n"
        "      np.random.default_rng(7).integers(100, size=5).tolist(),\n"
        "      np.rint(np.fft.irfft(np.fft.rfft([1, 2, 3, 4]) ** 2)).astype(int).tolist())\n"
        "import numpy.polynomial.polynomial as p\nprint(p.polyval(2, [1, 2, 3]))\n"
        "np.random.seed(5)\nprint(np.random.rand(3).tolist())",
        "",
    ),
    "numpy reads the input": (
        "import sys\nimport numpy as np\nprint(np.fromstring(sys.stdin.read(), dtype=np.int64, sep=' ').tolist())\n"
        "print(np.array([1.5, 2]).tobytes()[:4], np.__name__)",
        NUMBERS,
    ),
    "random with a seed": (
        "import random\nrandom.seed(7)\nprint(random.random(), random.sample(range(99), 5), random.Random(3).randint(0, 9))",
        "",
    ),
    "heaps and bisection": (
        "import heapq, bisect, collections, itertools\nh = [3, 1, 2]\nheapq.heapify(h)\nprint(heapq.heappop(h), h)\n"
        "print(bisect.bisect([1, 2, 2, 3], 2), collections.Counter('abca').most_common(1), list(itertools.permutations([1, 2])))",
        "",
    ),
    "large numbers": ("print(len(str(3 ** 9000)), pow(3, 10**18, 10**9 + 7), -7 // 2, -7 % 3)", ""),
    "more digits than are printed": ("print(len(str(10 ** 5000)))", ""),
    "decimals and fractions": (
        "from decimal import Decimal, getcontext\nfrom fractions import Fraction\ngetcontext().prec = 30\n"
        "print(Decimal(2).sqrt(), Fraction(1, 3) + Fraction(1, 6), round(2.5), 0.1 + 0.2, f'{1e22:.3f}')",
        "",
    ),
    "regular expressions": ("import re\nprint(re.findall(r'(\\w)(\\d)', 'a1 b2'), re.sub('a+', 'x', 'caat'))", ""),
    "dates": ("import datetime\nprint(datetime.date(2024, 2, 28) + datetime.timedelta(2), datetime.datetime(1, 1, 1))", ""),
    "time passes": ("import time\na = time.time(), time.perf_counter()\ntime.sleep(0.01)\nprint(time.perf_counter() > a[1])", ""),
    "a dataclass in order": (
        "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass P:\n    a: int\n"
        "    b: list = field(default_factory=list, compare=False)\nprint(sorted([P(2), P(1)]), __name__, P.__module__)",
        "",
    ),
    "pickled classes of the program": (
        "import pickle, copy\nclass P:\n    def __init__(self): self.a = 1\nprint(pickle.loads(pickle.dumps(P())).a, copy.deepcopy(P()).a)",
        "",
    ),
    "exec and eval": ("exec('x = 1 + 2')\nprint(x, eval('x * 2'), globals()['x'])", ""),
    "globals of the module": (
        "import sys\nprint(__name__, __file__.rsplit('/')[-1], sys.argv[0].rsplit('/')[-1], len(sys.argv), __doc__,\n"
        "      sys.modules['__main__'].__dict__ is globals(), __builtins__.__name__, __spec__, __package__)",
        "",
    ),
    "inspecting itself": (
        "import inspect\ndef f(a, b=1): pass\nprint(inspect.signature(f), inspect.currentframe().f_lineno)",
        "",
    ),
    "annotations from the future": (
        "from __future__ import annotations\ndef f(a: Missing) -> None: pass\nprint(f.__annotations__)",
        "",
    ),
    "a match statement": (
        "match input().split():\n    case [n]: print('one', n)\n    case _: print('more')",
        NUMBERS,
    ),
    "walrus and f-strings": ("while (line := input()) != '': print(f'{line!r:>12}|{len(line):03d}')", "a\nbc\n\n"),
    "output without print": ("import os, sys\nsys.stdout.write('a')\nsys.stdout.flush()\nos.write(1, b'b')\nprint('c')", ""),
    "output in order of two ways": ("import sys\nprint('text', flush=True)\nsys.stdout.buffer.write(b'bytes\\n')", ""),
    "many lines": ("print('\\n'.join(map(str, range(100000))))", ""),
    "any bytes": ("import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])", "\x00é\x7f"),
    "letters beyond ASCII": ("print(input().upper(), 'é'.encode(), ascii('é'))", "straße\n"),
    "exit functions": ("import atexit\natexit.register(print, 'bye')\nprint('hello')", ""),
    "finalisers": ("class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')", ""),
    "sys.exit in a function": ("import sys\ndef main():\n    print('x')\n    sys.exit()\nmain()", ""),
    "sys.exit with a number": ("import sys\nprint('x')\nsys.exit(7)", ""),
    "sys.exit with a text": ("import sys\nprint('x')\nsys.exit('wrong')", ""),
    "exit and quit": ("print('x')\nquit()", ""),
    "os._exit": ("import os\nprint('lost')\nos._exit(0)", ""),
    "an exception": ("print('x')\nraise ValueError('no')", ""),
    "an exception in a thread": ("import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()\nprint('x')", ""),
    "an exception in an exit function": ("import atexit\natexit.register(lambda: 1 / 0)\nprint('x')", ""),
    "a closed output": ("import sys\nprint('x')\nsys.stdout.close()", ""),
    "input that is missing": ("input()\ninput()\ninput()", NUMBERS),
    "a syntax error": ("print('x'\n", ""),
    "an indentation error": ("def f():\nreturn 1\n", ""),
    "a missing module": ("import no_such_module", ""),
    "a keyboard interrupt": ("raise KeyboardInterrupt", ""),
    "garbage and cycles": (
        "import gc\nclass N: pass\nfor _ in range(30000):\n    a = N()\n    a.a = a\nprint(gc.isenabled(), gc.get_threshold())",
        "",
    ),
    "big lists": ("a = list(range(2_000_000))\nprint(sum(a[::2]), len([0] * 10_000_000))", ""),
    "ctypes": ("import ctypes\nprint(ctypes.sizeof(ctypes.c_long), ctypes.CDLL(None).abs(-3))", ""),
    "struct and arrays": (
        "import array, struct\na = array.array('i')\na.frombytes(struct.pack('3i', 1, 2, 3))\nprint(a.tolist())",
        "",
    ),
    "resource limits asked": ("import resource\nprint(resource.getrlimit(resource.RLIMIT_STACK)[0] != 0)", ""),
    "a raised stack limit": (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "sys.setrecursionlimit(10**5)\ndef f(n): return n and f(n - 1)\nprint(f(20000))",
        "",
    ),
    "the environment": ("import os\nprint(os.environ.get('HOME') is not None, os.environ.get('ONLINE_JUDGE'))", ""),
    "the number of processors": ("import os, multiprocessing\nprint(os.cpu_count() >= 1, multiprocessing.cpu_count() >= 1)", ""),
    "warnings": ("import warnings\nwarnings.warn('old')\nprint(0 is 0)", ""),
    "help of the site": ("print(help, copyright is not None, license is not None)", ""),
    "zip and json": ("import json, zlib, base64\nprint(json.loads(zlib.decompress(zlib.compress(b'[1, 2]'))), base64.b64encode(b'x'))", ""),
    "logging": ("import logging\nlogging.basicConfig()\nlogging.warning('to stderr')\nprint('x')", ""),
    "a coroutine by hand": ("async def f(): return 3\nc = f()\ntry: c.send(None)\nexcept StopIteration as e: print(e.value)", ""),
    "contextvars and enums": (
        "import contextvars, enum\nv = contextvars.ContextVar('v', default=1)\nclass E(enum.Flag):\n    A = 1\n    B = 2\nprint(v.get(), E.A | E.B)",
        "",
    ),
}  # fmt: skip
