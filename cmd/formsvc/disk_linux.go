package main

import "syscall"

// diskOf describes the file system of a path.
func diskOf(path string) (disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return disk{}, err
	}
	d := diskType(uint32(s.Type))             //nolint:gosec // the kernel's numbers have 32 bits
	d.free = int64(s.Bavail) * int64(s.Bsize) //nolint:gosec // bytes of a disk
	return d, nil
}

// diskType maps the magic numbers of statfs(2) that matter.
func diskType(number uint32) disk {
	switch number {
	case 0x6969:
		return disk{name: "NFS", kind: diskNetwork}
	case 0x517b, 0xff534d42, 0xfe534d42:
		return disk{name: "SMB", kind: diskNetwork}
	case 0x01021997:
		return disk{name: "9P", kind: diskNetwork}
	case 0x00c36400:
		return disk{name: "Ceph", kind: diskNetwork}
	case 0x5346414f, 0x6b414653:
		return disk{name: "AFS", kind: diskNetwork}
	case 0x01021994:
		return disk{name: "tmpfs", kind: diskMemory}
	case 0x858458f6:
		return disk{name: "ramfs", kind: diskMemory}
	case 0x794c7630:
		return disk{name: "overlay", kind: diskLayer}
	}
	return disk{kind: diskLocal}
}
