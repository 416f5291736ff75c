//go:build linux

package lossyfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

const (
	// pageSize is the minimum that the kernel writes to a disk at once.
	pageSize = 4096
	// sectorSize is the unit that a disk writes atomically.
	sectorSize = 512
	// maxSize limits files, because their page table grows with their size.
	maxSize = 16 << 30
	// writtenBack is the inverse probability that a page has reached the disk before it is rewritten.
	writtenBack = 8
	// tornOf is the inverse probability that a lost page is torn.
	tornOf = 4
)

type page [pageSize]byte

// A content is the bytes of a file. A nil page is all zeros, and so is the last page
// behind the size. Contents share pages: a page that two contents share is copied before
// it changes.
type content struct {
	pages []*page
	size  int64
}

func (c *content) page(i int) *page {
	if i < len(c.pages) {
		return c.pages[i]
	}
	return nil
}

func (c *content) set(i int, p *page) {
	if more := i + 1 - len(c.pages); more > 0 {
		c.pages = append(c.pages, make([]*page, more)...)
	}
	c.pages[i] = p
}

// cut removes the bytes behind a size.
func (c *content) cut(size int64) {
	c.size = size
	c.pages = c.pages[:min(len(c.pages), pagesIn(size))]
	used := int(size % pageSize)
	if last := int(size / pageSize); used != 0 && c.page(last) != nil {
		short := new(page)
		copy(short[:used], c.pages[last][:])
		if *short != *c.pages[last] {
			c.pages[last] = short
		}
	}
}

// read fills dest from an offset on and returns the number of bytes.
func (c *content) read(dest []byte, offset int64) int {
	if offset >= c.size {
		return 0
	}
	dest = dest[:min(int64(len(dest)), c.size-offset)]
	for n := 0; n < len(dest); {
		i, from := int((offset+int64(n))/pageSize), int((offset+int64(n))%pageSize)
		part := dest[n:min(len(dest), n+pageSize-from)]
		if p := c.page(i); p != nil {
			copy(part, p[from:])
		} else {
			clear(part)
		}
		n += len(part)
	}
	return len(dest)
}

// pagesIn returns the number of pages that begin before a size.
func pagesIn(size int64) int { return int((size + pageSize - 1) / pageSize) }

// value returns a page as comparable bytes.
func value(p *page) page {
	if p == nil {
		return page{}
	}
	return *p
}

// A file is the bytes that processes see, and those on the disk.
type file struct {
	now, disk content
	dirty     map[int]bool // pages that were written since the last sync
	low       int64        // the smallest size since the last sync
}

// write writes data at an offset.
func (f *file) write(random *rand.Rand, data []byte, offset int64) {
	for len(data) > 0 {
		i, from := int(offset/pageSize), int(offset%pageSize)
		p := f.now.page(i)
		if f.dirty[i] && random.IntN(writtenBack) == 0 && f.rewrites(i) {
			f.disk.set(i, p)
		}
		if p == nil || p == f.disk.page(i) {
			own := value(p)
			p = &own
			f.now.set(i, p)
		}
		n := copy(p[from:], data)
		f.mark(i)
		data, offset = data[n:], offset+int64(n)
		f.now.size = max(f.now.size, offset)
	}
}

// rewrites reports whether a page lies in a part of the file that existed at the last
// sync and ever since, so that it reaches the disk by itself.
func (f *file) rewrites(i int) bool {
	return int64(i+1)*pageSize <= f.disk.size && !f.cutShort()
}

// cutShort reports whether the file has been shorter than it is on the disk.
func (f *file) cutShort() bool { return f.low < f.disk.size }

func (f *file) mark(i int) {
	if f.dirty == nil {
		f.dirty = make(map[int]bool)
	}
	f.dirty[i] = true
}

// truncate sets the size.
func (f *file) truncate(size int64) {
	if size >= f.now.size {
		f.now.size = size
		return
	}
	f.now.cut(size)
	f.low = min(f.low, size)
	maps.DeleteFunc(f.dirty, func(i int, _ bool) bool { return i >= pagesIn(size) })
	if last := int(size / pageSize); f.now.page(last) != nil {
		f.mark(last)
	}
}

// sync makes the current state of the file durable.
func (f *file) sync() {
	if f.cutShort() {
		f.disk.cut(f.low)
	}
	for i := range f.dirty {
		f.disk.set(i, f.now.page(i))
	}
	f.disk.size, f.low = f.now.size, f.now.size
	clear(f.dirty)
}

// lose keeps the state on the disk plus a random part of the later changes.
func (f *file) lose(random *rand.Rand) (lost Loss) {
	odds := random.Float64() // for each file, so that all and nothing are as likely as half
	if f.cutShort() && random.Float64() < odds {
		f.disk.cut(f.low)
	}
	size := f.disk.size
	if !f.cutShort() {
		size = between(random, size, f.now.size)
	}
	torn := make(map[int]bool)
	dirty := slices.Sorted(maps.Keys(f.dirty))
	for _, i := range dirty {
		switch {
		case f.cutShort() && int64(i+1)*pageSize > f.low:
			// The disk doesn't know yet that the file was truncated here.
		case random.Float64() < odds:
			f.disk.set(i, f.now.page(i))
		case random.IntN(tornOf) == 0:
			torn[i] = true
			f.disk.set(i, tear(random, f.disk.page(i), f.now.page(i)))
		}
	}
	f.disk.cut(size)
	for _, i := range dirty {
		if value(f.disk.page(i)) != value(f.now.page(i)) {
			lost.Pages++
			if torn[i] {
				lost.Torn++
			}
		}
	}
	f.now = content{pages: slices.Clone(f.disk.pages), size: size}
	f.low = size
	clear(f.dirty)
	return lost
}

// between returns a size that the disk may have while it goes from one to a larger one.
// Half of the time it is one of the two.
func between(random *rand.Rand, from, to int64) int64 {
	switch random.IntN(4) {
	case 0:
		return from
	case 1:
		return to
	}
	return from + random.Int64N(to-from+1)
}

// tear returns a page that begins with sectors of the new one and ends with those of the
// old.
func tear(random *rand.Rand, before, after *page) *page {
	torn := value(before)
	arrived := sectorSize * (1 + random.IntN(pageSize/sectorSize-1))
	copy(torn[:arrived], after[:arrived])
	return &torn
}
