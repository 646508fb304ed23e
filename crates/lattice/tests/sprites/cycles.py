# An agent that changes files at random and says how everything looks: once at its beginning, and after each round.
import hashlib, json, mmap, os, random, shutil, stat, sys, time

TOPS = ["/workspace", "/home/agent"]
FOLDERS = ["", "src", "src/deep", "lib", "new", "new/inner", "\u00fc"]


def look(top):
    seen, groups = {}, {}
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if os.path.join(folder, name) != "/workspace/.lattice")
        for name in [""] + folders + sorted(files):
            path = os.path.join(folder, name) if name else folder
            found = os.lstat(path)
            kind = stat.S_IFMT(found.st_mode)
            if kind == stat.S_IFDIR and name:
                continue
            said = [oct(found.st_mode), found.st_mtime_ns]
            if kind == stat.S_IFLNK:
                said.append(os.readlink(path))
            else:
                said.append({key: os.getxattr(path, key).hex() for key in sorted(os.listxattr(path))})
            if kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    said.append(hashlib.sha256(file.read()).hexdigest())
                said.append("sparse" if found.st_blocks * 512 < found.st_size else "full")
                # A file of the layer below that gets a second name has two numbers until it is mounted again.
                if found.st_nlink > 1 and os.path.basename(path).startswith("n"):
                    said.append(groups.setdefault(found.st_ino, len(groups)))
            seen[os.path.relpath(path, top)] = said
    return seen


def any_path(dice, made):
    folder = os.path.join(dice.choice(TOPS + TOPS[:1] * 3), dice.choice(FOLDERS))
    known = ["a", "b", "c", "deep", "inner"]
    return os.path.join(folder, f"n{dice.randrange(10)}" if made or dice.randrange(3) == 0 else dice.choice(known))


def known_path(dice, wanted):
    """Something that is there: what is changed at random should mostly exist."""
    found = []
    for top in TOPS:
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if name not in (".lattice", ".git"))
            found += [os.path.join(folder, name) for name in folders + sorted(files)]
    found = [path for path in found if wanted(path)]
    return dice.choice(found) if found else any_path(dice, True)


def gone(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def change(dice):
    kind = dice.randrange(18)
    one, other = any_path(dice, kind in (0, 6, 8, 9)), any_path(dice, True)
    if kind == 7:
        one = known_path(dice, lambda path: os.path.isfile(path) and os.path.basename(path).startswith("n"))
    elif kind in (2, 3, 4) or kind >= 10:
        one = known_path(dice, lambda path: kind != 17 or os.path.isfile(path))
    os.makedirs(os.path.dirname(other), exist_ok=True)
    os.makedirs(os.path.dirname(one), exist_ok=True)
    if os.path.exists(one) and stat.S_ISFIFO(os.stat(one).st_mode):
        # Opening one waits for somebody at its other end.
        os.remove(one)
    text = dice.randbytes(dice.randrange(5000))
    if kind <= 1:
        gone(one) if kind == 0 else None
        with open(one, "wb") as file: file.write(text)
    elif kind == 2:
        with open(one, "ab") as file: file.write(text)
    elif kind == 3:
        os.truncate(one, dice.randrange(100))
    elif kind == 4:
        gone(one)
    elif kind == 5:
        # All of a workspace would be the mailbox too.
        gone(one if os.path.dirname(one).rstrip("/") in TOPS else os.path.dirname(one))
    elif kind == 6:
        gone(one); os.symlink(other, one)
    elif kind == 7:
        gone(other); os.link(one, other)
    elif kind == 8:
        gone(one); os.mkfifo(one)
    elif kind == 9:
        gone(one)
        with open(one, "wb") as file: file.seek(1 << 20); file.write(text)
    elif kind <= 12:
        # Only what was made here may have a name whose links are counted.
        counted = os.path.basename(one).startswith("n") or os.path.isdir(one)
        folder, name = os.path.split(other)
        os.rename(one, other if counted else os.path.join(folder, "m" + name[1:]))
    elif kind == 13:
        os.rename(os.path.dirname(one), os.path.join(dice.choice(TOPS), f"new/d{dice.randrange(4)}"))
    elif kind == 14:
        # A folder that cannot be entered cannot be looked at either.
        os.chmod(one, dice.choice([0o755, 0o700, 0o2770] if os.path.isdir(one) else [0o644, 0o4755, 0o600, 0o2440]))
    elif kind == 15:
        os.setxattr(one, f"user.n{dice.randrange(3)}", text[:200], follow_symlinks=False)
    elif kind == 16:
        os.utime(one, ns=(0, dice.randrange(10**18)), follow_symlinks=False)
    else:
        with open(one, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory: memory[0] = dice.randrange(256)


def tell():
    print(json.dumps({top: look(top) for top in TOPS}, sort_keys=True), flush=True)


dice = random.Random(int(sys.argv[1]))
tell()
for number in range(int(sys.argv[2])):
    for _ in range(1 + dice.randrange(12)):
        try:
            change(dice)
        except (OSError, ValueError):
            pass
    tell()
    while not os.path.exists(f"/workspace/.lattice/go{number}"):
        time.sleep(0.001)
time.sleep(600)
