package keyring

import "time"

// What the tests outside the package need of its inside.
var (
	Create = create
	Format = format
)

// MaxFile is the length of the longest file.
const MaxFile = maxFile

// SetClock makes k take the time from now, as if its file had just been read.
func (k *Keyring) SetClock(now func() time.Time) {
	k.file.now, k.file.sealed = now, attempt{at: now()}
}
