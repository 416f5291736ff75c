//go:build linux

// Package lossyfs is a file system for tests that loses its power: what was not
// made durable with fsync is gone then, or there in part, as on a disk.
//
// What survives [FS.PowerLoss]:
//
//   - The bytes and the size of a file as they were when fsync or fdatasync of it
//     began. Closing a file makes nothing durable, nor does sync(2), of which such
//     a file system is not told.
//   - Names (of files made, linked, renamed or removed, and of directories) as
//     they were when fsync of their directory began. A rename from one directory
//     to another is durable after fsync of either, and never half done.
//   - Of what was written since: a random part, page by page of 4 KiB. Of some
//     pages only the first sectors of 512 bytes arrive. A page that was written
//     several times may be there as it was in between. The size may be that of
//     before, the last one or one in between, with zeros where nothing arrived; a
//     file that was made shorter may be as long as before.
//   - Of the names that changed since: those of the first changes in each
//     directory, of a random number of them. Whether the bytes of a file arrive
//     has nothing to do with whether its name does.
//
// An fsync of a file does not make its name durable, although on ext4 and XFS it
// does for a new file: POSIX asks for fsync of the directory, and both programs
// that this is for abide by that. SQLite calls it when it has made a journal or
// a write-ahead log (not for the database file, but that is in the same directory
// and older), and so does the blob store after every name it gives. A program
// that relies on more loses files here, whatever file system it runs on later.
//
// Owners, permissions and times are never lost. There are no symbolic links,
// special files and extended attributes.
package lossyfs

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Loss counts what did not reach the disk when the power went. Files whose name
// ends in "-shm" don't count: that is the memory SQLite's processes share, which
// they make anew after a crash, so that nothing is put to the test by losing it.
type Loss struct {
	Pages int // pages of 4 KiB that are not as they were written last, the torn ones included
	Torn  int // those of which only the first sectors arrived
	Names int // changes of names: files and directories made, linked, renamed and removed
}

// An FS is a mounted file system. Its methods are safe for concurrent use, and
// so is what is in Dir, except for mapping a file into the memory of the process
// that mounted it: it may wait for itself for ever. A test runs what does that,
// such as SQLite, in a process of its own. When the process that mounted it is
// killed, "umount -f" removes what stays mounted, and the process itself if it
// was just writing there.
type FS struct {
	Dir string // where it is mounted

	server *fuse.Server // replaced by PowerLoss

	mu      sync.Mutex // guards what follows, and all inodes
	random  *rand.Rand
	root    *inode
	last    uint64 // inode number
	pending []op   // changes of names which are not durable, oldest first
	dropped Loss
	cut     *cut // nil while every fsync ends
}

// Mount mounts an empty file system, which is gone when the test ends. All of it
// is in memory, twice what is written again between one fsync and the next. The
// seed decides what is lost: the same for the same calls in the same order.
// Without FUSE the test is skipped, except under CI=true, where it fails.
func Mount(t testing.TB, seed uint64) *FS {
	t.Helper()
	f := &FS{
		Dir:    mountPoint(t),
		random: rand.New(rand.NewPCG(seed, seed)), // nobody gains by guessing it
	}
	f.root = f.newInode(fuse.S_IFDIR|0o755, fuse.CurrentOwner())
	f.root.links = 1
	f.mount(t)
	t.Cleanup(func() { f.unmountAtEnd(t) })
	return f
}

// Cut stops the disk in the middle of things: so many more fsyncs end, and from
// then on none does until [FS.PowerLoss]; who calls one waits until it is killed.
// The channel is closed when the first waits. A process that is merely killed is
// seldom between a write and the fsync that follows; after Cut it always is.
func (f *FS) Cut(fsyncs int) (stopped <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = &cut{left: fsyncs, stopped: make(chan struct{})}
	return f.cut.stopped
}

// PowerLoss takes the power away and gives it back: from then on only what has
// reached the disk is there, and it is durable. The processes that used the file
// system must have been killed before, so that none goes on with what it
// remembers; as long as one has a file open there, PowerLoss waits, and in the
// end fails.
func (f *FS) PowerLoss(t testing.TB) {
	t.Helper()
	// The kernel must forget what it has read, too. Before that it writes what
	// processes have changed in mapped memory, which is one more write without fsync.
	f.unmount(t)
	f.mu.Lock()
	f.lose()
	f.cut = nil
	f.mu.Unlock()
	f.mount(t)
}

// Dropped returns what all losses of power so far have cost. A test in which that
// is little has shown little.
func (f *FS) Dropped() Loss {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropped
}
