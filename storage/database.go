package storage

import "context"

// A Database is what the stores on a database can do beyond the contract, for programs
// that run one.
type Database interface {
	// Ping returns nil when the database answers, has a schema and may be used. It fails
	// with formsvc.ErrMoved when its data is being copied to another database, or was.
	Ping(ctx context.Context) error
	// CheckKeys makes sure that the keyring has every key that values of this database may
	// be sealed under, and notes the key that it seals with. It fails with
	// keyring.ErrUnknownKey, naming the keys that are missing. Open calls it after
	// migrating.
	CheckKeys(ctx context.Context) error
	// MissingKeys returns which keys values of this database may be sealed under that the
	// keyring doesn't have.
	MissingKeys(ctx context.Context) ([]string, error)
	// RotateSecrets seals all secrets and headers of webhooks anew that are not sealed
	// under the first key of the keyring, those stored readable among them, and returns how
	// many webhooks it changed. When none is left it notes that the first key is the only
	// one in use: the others can then be taken out of the keyring, if every process that
	// uses the database seals with the first one. Webhooks may be used and changed
	// meanwhile. It fails when there is no key, and when a value does not open; values that
	// do are sealed anew nevertheless.
	RotateSecrets(ctx context.Context) (changed int, err error)
	// CountFiles returns how many files there are in all accounts, and how many bytes they
	// have together. It reads what is known of each of them.
	CountFiles(ctx context.Context) (files int, bytes int64, err error)
}
