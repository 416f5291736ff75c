//go:build linux

package torture_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	goclient "github.com/formsvc/toolkit/httpx/client"
)

// A disk is a file system in memory. After losePower, it has
//
//   - the bytes of each file as they were at its last fsync, and of later writes a random part, some of them torn;
//   - the names in each directory as they were at its last fsync, and of later changes a random number of the first ones.
//
// An fsync of a file does not make its name durable. Files must not be mapped into the memory of this process.
type disk struct {
	dir    string // where it is mounted
	t      testing.TB
	server *fuse.Server

	mu                    sync.Mutex // guards what follows, and all inodes
	root                  *inode
	last                  uint64 // number of an inode
	left                  int    // how many fsyncs are left before all others fail; negative for any number
	lostWrites, lostNames int
}

// An inode is a file or a directory, independent of its names.
type inode struct {
	number   uint64
	mode     uint32 // with the type
	links    uint32 // the number of its names
	modified time.Time

	now, flushed []byte  // of a file: what processes see, and what is on the disk
	writes       []write // since the last fsync, oldest first

	names, durable map[string]*inode // of a directory: what processes see, and what is on the disk
	changes        []change          // since the last fsync, oldest first
}

// A write puts data at an offset. Without data it sets the size.
type write struct {
	offset int
	data   []byte
}

func (w write) apply(b []byte) []byte {
	if end := w.offset + len(w.data); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	} else if w.data == nil {
		b = b[:w.offset]
	}
	copy(b[w.offset:], w.data)
	return b
}

// A change maps names to inodes, or to nil if it removes them. It reaches the disk as a whole.
type change map[string]*inode

func (c change) apply(names map[string]*inode) {
	for name, in := range c {
		if names[name] = in; in == nil {
			delete(names, name)
		}
	}
}

func (in *inode) write(w write) {
	in.now, in.writes, in.modified = w.apply(in.now), append(in.writes, w), time.Now()
}

func (in *inode) change(c change) {
	for name, to := range c {
		if old := in.names[name]; old != nil {
			old.links--
		}
		if to != nil {
			to.links++
		}
	}
	c.apply(in.names)
	in.changes, in.modified = append(in.changes, c), time.Now()
}

// flush makes an inode's content durable.
func (in *inode) flush() {
	for _, w := range in.writes {
		in.flushed = w.apply(in.flushed)
	}
	for _, c := range in.changes {
		c.apply(in.durable)
	}
	in.writes, in.changes = nil, nil
}

// lose reduces an inode, and those below it that have not been seen, to what reached the disk.
func (d *disk) lose(in *inode, seen map[*inode]bool) {
	seen[in] = true
	odds := rand.Float64() // for each file, so that all and nothing are as likely as half
	for _, w := range in.writes {
		switch {
		case rand.Float64() < odds:
			in.flushed = w.apply(in.flushed)
			continue
		case rand.IntN(4) == 0 && len(w.data) > 512: // torn between two sectors
			in.flushed = write{w.offset, w.data[:512*(1+rand.IntN(len(w.data)/512))]}.apply(in.flushed)
		}
		d.lostWrites++
	}
	reached := rand.IntN(len(in.changes) + 1)
	for _, c := range in.changes[:reached] {
		c.apply(in.durable)
	}
	d.lostNames += len(in.changes) - reached
	in.now, in.names, in.links = slices.Clone(in.flushed), maps.Clone(in.durable), 0
	in.writes, in.changes = nil, nil
	for _, child := range in.names {
		if !seen[child] {
			d.lose(child, seen)
		}
		child.links++
	}
}

// fail makes every fsync fail after some more, until losePower. Only then is a process certain to be between a write and its
// fsync when it is killed.
func (d *disk) fail(fsyncs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = fsyncs
}

// losePower simulates a power loss and a restart. All processes that used the disk must have been killed.
func (d *disk) losePower() {
	d.t.Helper()
	d.unmount() // the kernel must drop its cache, too
	d.mu.Lock()
	d.lose(d.root, make(map[*inode]bool))
	d.root.links, d.left = 1, -1
	d.mu.Unlock()
	d.mount()
}

// mountDisk mounts an empty disk until the test ends. It skips the test where mounting isn't possible.
func mountDisk(t testing.TB) *disk {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		missing(t, "no power is lost without FUSE: %v", err)
	}
	d := &disk{t: t, dir: filepath.Join(t.TempDir(), "disk"), left: -1}
	d.root = d.inode(syscall.S_IFDIR | 0o755)
	noError(t, os.Mkdir(d.dir, 0o700))
	d.mount()
	t.Cleanup(d.unmount)
	return d
}

func (d *disk) mount() {
	d.t.Helper()
	forever := time.Hour // every change goes through the kernel, so its cache is never wrong
	server, err := fs.Mount(d.dir, &node{disk: d, in: d.root}, &fs.Options{
		EntryTimeout: &forever, AttrTimeout: &forever, NegativeTimeout: &forever, NullPermissions: true,
		RootStableAttr: &fs.StableAttr{Ino: d.root.number}, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()),
		MountOptions: fuse.MountOptions{
			FsName: "torture", Name: "torture", DirectMountStrict: os.Geteuid() == 0, MaxWrite: 1 << 20, DisableXAttrs: true,
			// Without it the kernel drops a file's pages when its time has changed, also mapped ones.
			ExplicitDataCacheControl: true,
		},
	})
	if err != nil {
		d.t.Fatalf("mount: %v", err)
	}
	d.server = server
}

// unmount waits while a killed process closes its files.
func (d *disk) unmount() {
	d.t.Helper()
	waitFor(d.t, "unmount", func() bool { return d.server.Unmount() == nil })
}

func (d *disk) inode(mode uint32) *inode {
	d.last++
	in := &inode{number: d.last, mode: mode, modified: time.Now()}
	if mode&syscall.S_IFDIR != 0 {
		in.names, in.durable = make(map[string]*inode), make(map[string]*inode)
	}
	return in
}

// A node handles the kernel's requests about an inode. The kernel has checked permissions, types and names.
type node struct {
	fs.Inode
	disk *disk
	in   *inode
}

func (n *node) lock() (unlock func()) {
	n.disk.mu.Lock()
	return n.disk.mu.Unlock
}

func (in *inode) attributes(out *fuse.Attr) {
	out.Ino, out.Mode, out.Nlink, out.Size = in.number, in.mode, in.links, uint64(len(in.now))
	out.SetTimes(&in.modified, &in.modified, &in.modified)
}

func (n *node) entry(ctx context.Context, in *inode, out *fuse.EntryOut) *fs.Inode {
	in.attributes(&out.Attr)
	return n.NewInode(ctx, &node{disk: n.disk, in: in}, fs.StableAttr{Mode: in.mode & syscall.S_IFMT, Ino: in.number})
}

// add gives a name to an inode.
func (n *node) add(ctx context.Context, name string, in *inode, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if n.in.names[name] != nil {
		return nil, syscall.EEXIST
	}
	n.in.change(change{name: in})
	return n.entry(ctx, in, out), 0
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	in := n.in.names[name]
	if in == nil {
		return nil, syscall.ENOENT
	}
	return n.entry(ctx, in, out), 0
}

func (n *node) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	defer n.lock()()
	child, errno := n.add(ctx, name, n.disk.inode(syscall.S_IFREG|mode&0o7777), out)
	return child, nil, fuse.FOPEN_KEEP_CACHE, errno
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	return n.add(ctx, name, n.disk.inode(syscall.S_IFDIR|mode&0o7777), out)
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	return n.add(ctx, name, target.(*node).in, out)
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	defer n.lock()()
	if len(n.in.names[name].names) > 0 {
		return syscall.ENOTEMPTY
	}
	n.in.change(change{name: nil})
	return 0
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno { return n.Unlink(ctx, name) }

// Rename works within a directory, as the service needs no more.
func (n *node) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	defer n.lock()()
	if to.(*node) != n || flags != 0 {
		return syscall.EXDEV
	}
	n.in.change(change{name: nil, newName: n.in.names[name]})
	return 0
}

func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	defer n.lock()()
	var entries []fuse.DirEntry
	for name, in := range n.in.names {
		entries = append(entries, fuse.DirEntry{Name: name, Ino: in.number, Mode: in.mode})
	}
	return fs.NewListDirStream(entries), 0
}

// Open lets the kernel keep its cache: a mapped page that it dropped would be written at an arbitrary time.
func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_KEEP_CACHE, 0
}

func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	defer n.lock()()
	from := min(int(offset), len(n.in.now))
	return fuse.ReadResultData(dest[:copy(dest, n.in.now[from:])]), 0
}

func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	defer n.lock()()
	n.in.write(write{int(offset), slices.Clone(data)})
	return uint32(len(data)), 0
}

// Fsync is for directories, too.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	defer n.lock()()
	if n.disk.left == 0 {
		return syscall.EIO
	}
	n.disk.left--
	n.in.flush()
	return 0
}

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	defer n.lock()()
	n.in.attributes(&out.Attr)
	return 0
}

// Setattr ignores modes and times: a new file has them already.
func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	defer n.lock()()
	if size, ok := in.GetSize(); ok {
		n.in.write(write{offset: int(size)})
	}
	n.in.attributes(&out.Attr)
	return 0
}

// The machine loses power: the process dies, and unflushed data is lost entirely or in part. The database and the files are
// on that disk.
func TestPowerLoss(t *testing.T) {
	d := mountDisk(t)
	w := newWorld(t, 1, setup{dsn: "sqlite:" + filepath.Join(d.dir, "formsvc.db"), data: filepath.Join(d.dir, "data")})
	w.files = true
	w.load.start(300)
	for range rounds(6) {
		w.start(0)
		w.more(20)
		time.Sleep(300*time.Millisecond + rand.N(time.Second))
		d.fail(rand.IntN(20)) // most losses are between a write and its flush
		time.Sleep(50 * time.Millisecond)
		w.kill(0)
		d.losePower()
	}
	w.check()
	if d.lostWrites == 0 || d.lostNames == 0 {
		t.Error("INVALID: nothing was lost that was not flushed")
	}
}

// When a restore has ended, everything that it made is on the disk.
func TestRestoreIsFlushed(t *testing.T) {
	d, from := mountDisk(t), setup{dsn: sqliteDSN(t), data: t.TempDir()}
	p := from.start(t)
	must(newClient(t, p.firstKey(t)).api(p.url).Campaigns.Create(t.Context(), goclient.CampaignInput{Title: "t"}))
	from.command(t, "webhooks", "create", "--url", "https://example.com", "--events", "all", "--secret", secret)
	p.terminate(t)
	copied := filepath.Join(t.TempDir(), "backup")
	from.command(t, "backup", "--to", copied)
	to := setup{dsn: "sqlite:" + filepath.Join(d.dir, "formsvc.db"), data: d.dir}
	to.command(t, "restore", "--from", copied)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root.names["secret.keys"] == nil || d.root.names["formsvc.db"] == nil || len(d.root.changes) > 0 {
		t.Errorf("restored %v, of which %v aren't flushed", d.root.names, d.root.changes)
	}
	for name, in := range d.root.names {
		if len(in.writes) > 0 {
			t.Errorf("%d writes to %s aren't flushed", len(in.writes), name)
		}
	}
}
