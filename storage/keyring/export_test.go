package keyring

import "time"

// Internals that the tests outside the package need.
var (
	Create = create
	Format = format
)

// MaxFile is the maximum length of a file.
const MaxFile = maxFile

// SetClock makes k use now as its clock, as if its file had just been read.
func (k *Keyring) SetClock(now func() time.Time) {
	k.file.now, k.file.sealed = now, attempt{at: now()}
}
