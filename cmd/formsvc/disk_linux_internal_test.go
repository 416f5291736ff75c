package main

import "testing"

// The numbers are from statfs(2) and linux/magic.h. Only some of these file systems exist on a test machine.
func TestDiskTypes(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint32]diskKind{
		0x6969: diskNetwork, 0xff534d42: diskNetwork, 0x01021997: diskNetwork, 0x00c36400: diskNetwork, // NFS, SMB, 9P, Ceph
		0x01021994: diskMemory, 0x794c7630: diskLayer, // tmpfs, overlay
		0xef53: diskLocal, 0x58465342: diskLocal, 0x9123683e: diskLocal, // ext4, XFS, Btrfs
	} {
		if got := diskType(number).kind; got != want {
			t.Errorf("%#x: %d, want %d", number, got, want)
		}
	}
}
