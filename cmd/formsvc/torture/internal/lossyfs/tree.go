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

// maxPending bounds how many changes of names wait for an fsync. When there are
// more, the oldest becomes durable by itself, as it would after some seconds.
const maxPending = 4096

// An inode is a file or a directory, whatever its names are.
type inode struct {
	number          uint64
	mode            uint32 // with the type
	uid, gid        uint32
	modified, other time.Time // when bytes or names changed, and when anything did
	links           uint32    // how many names it has

	file file // of a directory: always empty

	// The names in a directory, as processes see them and on the disk. Both are nil
	// for a file.
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

// A change gives a name in a directory to an inode, or to none.
type change struct {
	dir  *inode
	name string
	to   *inode
}

// An op is the changes that reach the disk together or not at all.
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

// do changes names. What happens to the disk comes later.
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

// syncDir makes the names in a directory durable. With a rename from another
// directory goes what happened there before it, and nothing else does.
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

// lose leaves what is on the disk, and chance puts there.
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

// collect adds to all every inode that is in a directory or below it, with a
// name of it.
func collect(all map[*inode]string, in *inode, name string, names func(*inode) map[string]*inode) {
	all[in] = name
	for name, child := range names(in) {
		collect(all, child, name, names)
	}
}

// loseNames lets the first changes in each directory reach the disk, as many as
// chance says, and forgets the others.
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
				left[dir] = 0 // what comes after it does not arrive either
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
