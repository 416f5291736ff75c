//go:build linux

// Package lossyfs is a file system for tests that simulates power losses: data that was not made durable with fsync is lost
// entirely or in part, as on a disk.
//
// What survives [FS.PowerLoss]:
//
//   - The bytes and the size of a file as they were when an fsync or fdatasync of it began. Closing a file makes nothing
//     durable. Neither does sync(2), because the kernel doesn't report it to such a file system.
//   - Names (of files created, linked, renamed or removed, and of directories) as they were when an fsync of their
//     directory began. A rename from one directory to another is durable after an fsync of either, and never half done.
//   - Of later writes, a random part, page by page of 4 KiB. Some pages arrive only in their first sectors of 512 bytes. A
//     page that was written several times may survive in an earlier version. The size may be the old one, the last one or
//     one in between, with zeros where nothing arrived. A truncated file may be as long as before.
//   - Of later changes of names, the first ones in each directory, a random number of them. Whether the bytes of a file
//     survive is independent of whether its name does.
//
// An fsync of a file does not make its name durable. On ext4 and XFS it does for a new file, but POSIX asks for an fsync of
// the directory. SQLite and the blob store abide by POSIX. SQLite calls it after it has created a journal or a write-ahead
// log (not for the database file, which is in the same directory and older). The blob store calls it after every name that
// it creates. A program that relies on more loses files here, whatever file system it runs on later.
//
// Owners, permissions and times are never lost. There are no symbolic links, special files or extended attributes.
package lossyfs

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Loss counts the changes that did not reach the disk in power losses. Files whose name ends in
// "-shm" don't count: that is SQLite's shared memory, which is recreated after a crash.
type Loss struct {
	Pages int // pages of 4 KiB that differ from their last write, including torn ones
	Torn  int // pages of which only the first sectors arrived
	Names int // files and directories created, linked, renamed and removed
}

// An FS is a mounted file system. Its methods are safe for concurrent use. So are the
// files in Dir, but a file must not be mapped into the memory of the process that mounted
// the file system: it may deadlock. A test runs programs that map files, such as SQLite,
// in a process of their own.
//
// If the process that mounted it is killed, "umount -f" removes the mount that remains,
// and the process itself if it was writing there.
type FS struct {
	Dir string // where it is mounted

	server *fuse.Server // replaced by PowerLoss

	mu      sync.Mutex // guards what follows, and all inodes
	random  *rand.Rand
	root    *inode
	last    uint64 // inode number
	pending []op   // changes of names which are not durable, oldest first
	dropped Loss
	cut     *cut // nil while every fsync returns
}

// Mount mounts an empty file system until the test ends. All data are in memory, twice if
// they are rewritten between two fsyncs. The seed decides what is lost: the same calls in
// the same order lose the same data. Without FUSE the test is skipped, or fails under
// CI=true.
func Mount(t testing.TB, seed uint64) *FS {
	t.Helper()
	f := &FS{
		Dir:    mountPoint(t),
		random: rand.New(rand.NewPCG(seed, seed)), // not a secret
	}
	f.root = f.newInode(fuse.S_IFDIR|0o755, fuse.CurrentOwner())
	f.root.links = 1
	f.mount(t)
	t.Cleanup(func() { f.unmountAtEnd(t) })
	return f
}

// Cut stops the disk after this many more fsyncs. From then on, no fsync returns until [FS.PowerLoss]; its caller waits until
// it is killed. The channel is closed when the first one waits.
//
// A process that is killed without Cut is rarely between a write and the fsync that follows; after Cut it always is.
func (f *FS) Cut(fsyncs int) (stopped <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = &cut{left: fsyncs, stopped: make(chan struct{})}
	return f.cut.stopped
}

// PowerLoss simulates a power loss and a restart: only what has reached the disk
// survives, and it is durable. Kill the processes that used the file system before, so
// that none continues with data in its memory. As long as one has an open file there,
// PowerLoss waits, and fails in the end.
func (f *FS) PowerLoss(t testing.TB) {
	t.Helper()
	// The kernel must drop its cache, too. Before that it writes the changes in mapped
	// memory, which is one more write without fsync.
	f.unmount(t)
	f.mu.Lock()
	f.lose()
	f.cut = nil
	f.mu.Unlock()
	f.mount(t)
}

// Dropped returns the total loss of all power losses so far. A test with a small loss proves little.
func (f *FS) Dropped() Loss {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropped
}
