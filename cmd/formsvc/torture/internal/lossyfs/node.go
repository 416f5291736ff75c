//go:build linux

package lossyfs

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A node handles the kernel's requests about an inode. The kernel has checked permissions, file types and names; names are
// checked again where a mistake would lose a file.
type node struct {
	fs.Inode
	fs *FS
	in *inode
}

var (
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeLinker    = (*node)(nil)
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
)

// lock is for methods that begin with "defer n.lock()()".
func (n *node) lock() (unlock func()) {
	n.fs.mu.Lock()
	return n.fs.mu.Unlock
}

// entry returns the attributes that the kernel gets for an inode.
func (n *node) entry(ctx context.Context, in *inode, out *fuse.EntryOut) *fs.Inode {
	in.attributes(&out.Attr)
	return n.NewInode(ctx, &node{fs: n.fs, in: in}, fs.StableAttr{Mode: in.mode & syscall.S_IFMT, Ino: in.number})
}

func (in *inode) attributes(out *fuse.Attr) {
	out.Ino, out.Mode, out.Nlink = in.number, in.mode, in.links
	out.Uid, out.Gid = in.uid, in.gid
	out.Size = uint64(in.file.now.size) // never negative
	out.SetTimes(&in.modified, &in.modified, &in.other)
}

// make creates a file or directory that belongs to the caller.
func (n *node) make(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) *fs.Inode {
	var owner *fuse.Owner
	if caller, ok := fuse.FromContext(ctx); ok {
		owner = &caller.Owner
	}
	in := n.fs.newInode(mode, owner)
	n.fs.do(change{n.in, name, in})
	return n.entry(ctx, in, out)
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	in := n.in.now[name]
	if in == nil {
		return nil, syscall.ENOENT
	}
	return n.entry(ctx, in, out), 0
}

func (n *node) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (
	*fs.Inode, fs.FileHandle, uint32, syscall.Errno,
) {
	defer n.lock()()
	if n.in.now[name] != nil {
		return nil, nil, 0, syscall.EEXIST
	}
	return n.make(ctx, name, fuse.S_IFREG|mode&0o7777, out), nil, fuse.FOPEN_KEEP_CACHE, 0
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	if n.in.now[name] != nil {
		return nil, syscall.EEXIST
	}
	return n.make(ctx, name, fuse.S_IFDIR|mode&0o7777, out), 0
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	linked, ok := target.(*node)
	switch {
	case !ok:
		return nil, syscall.EXDEV
	case linked.in.links == 0:
		return nil, syscall.ENOENT
	case n.in.now[name] != nil:
		return nil, syscall.EEXIST
	}
	n.fs.do(change{n.in, name, linked.in})
	return n.entry(ctx, linked.in, out), 0
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.remove(name)
}

func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.remove(name)
}

func (n *node) remove(name string) syscall.Errno {
	defer n.lock()()
	switch in := n.in.now[name]; {
	case in == nil:
		return syscall.ENOENT
	case len(in.now) > 0:
		return syscall.ENOTEMPTY
	}
	n.fs.do(change{n.in, name, nil})
	return 0
}

func (n *node) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	defer n.lock()()
	dir, ok := to.(*node)
	if !ok {
		return syscall.EXDEV
	}
	in, old := n.in.now[name], dir.in.now[newName]
	const noReplace = 1 // RENAME_NOREPLACE
	switch {
	case flags&^noReplace != 0:
		return syscall.EINVAL
	case in == nil:
		return syscall.ENOENT
	case old != nil && flags&noReplace != 0:
		return syscall.EEXIST
	case old != nil && len(old.now) > 0:
		return syscall.ENOTEMPTY
	}
	n.fs.do(change{dir.in, newName, in}, change{n.in, name, nil})
	return 0
}

func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	defer n.lock()()
	entries := make([]fuse.DirEntry, 0, len(n.in.now))
	for name, in := range n.in.now {
		entries = append(entries, fuse.DirEntry{Name: name, Ino: in.number, Mode: in.mode})
	}
	return fs.NewListDirStream(entries), 0
}

// Open lets the kernel keep its cache: nobody else changes the file, and a mapped page
// that the kernel dropped would be written at an arbitrary time.
func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_KEEP_CACHE, 0
}

func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	defer n.lock()()
	return fuse.ReadResultData(dest[:n.in.file.now.read(dest, offset)]), 0
}

func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	if offset+int64(len(data)) > maxSize {
		return 0, syscall.EFBIG
	}
	defer n.lock()()
	n.in.file.write(n.fs.random, data, offset)
	n.in.touch()
	return uint32(len(data)), 0 // at most maxWrite
}

// Fsync is for directories, too.
func (n *node) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	if n.sync() {
		return 0
	}
	awaitKill(ctx)
	return syscall.EINTR // the caller is being killed
}

// sync makes the inode's content durable, unless the disk has stopped.
func (n *node) sync() bool {
	defer n.lock()()
	switch {
	case n.fs.cut.stops():
		return false
	case n.in.isDir():
		n.fs.syncDir(n.in)
	default:
		n.in.file.sync()
	}
	return true
}

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	defer n.lock()()
	n.in.attributes(&out.Attr)
	return 0
}

func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	defer n.lock()()
	n.in.other = time.Now()
	if size, ok := in.GetSize(); ok {
		if size > maxSize {
			return syscall.EFBIG
		}
		n.in.file.truncate(int64(size))
		n.in.touch()
	}
	if mode, ok := in.GetMode(); ok {
		n.in.mode = n.in.mode&syscall.S_IFMT | mode&0o7777
	}
	if uid, ok := in.GetUID(); ok {
		n.in.uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		n.in.gid = gid
	}
	if modified, ok := in.GetMTime(); ok {
		n.in.modified = modified
	}
	n.in.attributes(&out.Attr)
	return 0
}

// Statfs reports a disk of a terabyte that is never full.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 1 << 40 / pageSize
	out.Blocks, out.Bfree, out.Bavail = blocks, blocks, blocks
	out.Files, out.Ffree = blocks, blocks
	out.Bsize, out.Frsize, out.NameLen = pageSize, pageSize, 255
	return 0
}
