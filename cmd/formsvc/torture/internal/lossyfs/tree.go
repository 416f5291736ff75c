//go:build linux

package lossyfs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxPending limits the changes of names that wait for an fsync. Above it, the oldest becomes durable by itself, as it
// would after some seconds.
const maxPending = 4096

// An inode is a file or a directory, independent of its names.
type inode struct {
	number          uint64
	mode            uint32 // with the type
	uid, gid        uint32
	modified, other time.Time // when bytes or names changed, and when anything changed
	links           uint32    // the number of its names

	file file // of a directory: always empty

	// The names in a directory, as processes see them and on the disk. Both are nil for a
	// file.
	now, disk map[string]*inode
}

func (f *FS) newInode(mode uint32, owner *fuse.Owner) *inode {
	f.last++
	in := &inode{number: f.last, mode: mode}
	if owner != nil {
		in.uid, in.gid = owner.Uid, owner.Gid
	}
	in.touch()
	if in.isDir() {
		in.now, in.disk = make(map[string]*inode), make(map[string]*inode)
	}
	return in
}

func (in *inode) isDir() bool { return in.mode&fuse.S_IFDIR != 0 }

func (in *inode) touch() {
	in.modified = time.Now()
	in.other = in.modified
}

// A change makes a name in a directory refer to an inode, or removes it.
type change struct {
	dir  *inode
	name string
	to   *inode
}

// An op is a set of changes that reach the disk atomically.
type op []change

// dirs returns the directories whose names change, each once.
func (o op) dirs() []*inode {
	dirs := make([]*inode, 0, len(o))
	for _, c := range o {
		if !slices.Contains(dirs, c.dir) {
			dirs = append(dirs, c.dir)
		}
	}
	return dirs
}

// reach makes an op durable.
func (o op) reach() {
	for _, c := range o {
		put(c.dir.disk, c.name, c.to)
	}
}

func put(names map[string]*inode, name string, to *inode) {
	if to == nil {
		delete(names, name)
	} else {
		names[name] = to
	}
}

// do changes names. Later calls decide what reaches the disk.
func (f *FS) do(changes ...change) {
	for _, c := range changes {
		if old := c.dir.now[c.name]; old != nil {
			old.links--
			old.other = time.Now()
		}
		if c.to != nil {
			c.to.links++
			c.to.other = time.Now()
		}
		put(c.dir.now, c.name, c.to)
		c.dir.touch()
	}
	f.pending = append(f.pending, changes)
	if len(f.pending) > maxPending {
		f.pending[0].reach()
		f.pending = slices.Delete(f.pending, 0, 1)
	}
}

// syncDir makes the names in a directory durable. A rename from another directory also
// makes the earlier changes there durable, and nothing else.
func (f *FS) syncDir(dir *inode) {
	with := map[*inode]bool{dir: true}
	reached := make([]bool, len(f.pending))
	for i, o := range slices.Backward(f.pending) {
		dirs := o.dirs()
		if reached[i] = slices.ContainsFunc(dirs, func(d *inode) bool { return with[d] }); reached[i] {
			for _, d := range dirs {
				with[d] = true
			}
		}
	}
	var left []op
	for i, o := range f.pending {
		if reached[i] {
			o.reach()
		} else {
			left = append(left, o)
		}
	}
	f.pending = left
}

// lose keeps the state on the disk plus a random part of the later changes.
func (f *FS) lose() {
	files := make(map[*inode]string)
	collect(files, f.root, "", func(in *inode) map[string]*inode { return in.now })
	f.loseNames()
	collect(files, f.root, "", func(in *inode) map[string]*inode { return in.disk })
	inOrder := slices.SortedFunc(maps.Keys(files), func(a, b *inode) int { return cmp.Compare(a.number, b.number) })
	for _, in := range inOrder {
		in.links = 0
		lost := in.file.lose(f.random)
		if !strings.HasSuffix(files[in], "-shm") {
			f.dropped.Pages += lost.Pages
			f.dropped.Torn += lost.Torn
		}
	}
	f.root.links = 1
	for _, in := range inOrder {
		in.now = maps.Clone(in.disk)
		for _, child := range in.now {
			child.links++
		}
	}
}

// collect adds every inode in or below a directory to all, with one of its names.
func collect(all map[*inode]string, in *inode, name string, names func(*inode) map[string]*inode) {
	all[in] = name
	for name, child := range names(in) {
		collect(all, child, name, names)
	}
}

// loseNames lets a random number of the first changes in each directory reach the disk, and drops the others.
func (f *FS) loseNames() {
	var all []*inode // in the order of their first change, so that the seed decides
	left := make(map[*inode]int)
	for _, o := range f.pending {
		for _, dir := range o.dirs() {
			if left[dir]++; left[dir] == 1 {
				all = append(all, dir)
			}
		}
	}
	for _, dir := range all {
		left[dir] = f.random.IntN(left[dir] + 1)
	}
	for _, o := range f.pending {
		dirs := o.dirs()
		lost := slices.ContainsFunc(dirs, func(d *inode) bool { return left[d] == 0 })
		for _, dir := range dirs {
			if left[dir]--; lost {
				left[dir] = 0 // later changes don't arrive either
			}
		}
		if lost {
			f.dropped.Names++
		} else {
			o.reach()
		}
	}
	f.pending = nil
}
