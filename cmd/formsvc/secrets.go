package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/formsvc/toolkit/storage/keyring"
)

// keyFile is the file under --data with the encryption keys of the secrets in the database.
const keyFile = "secret.keys"

func (g *global) keyPath() string { return filepath.Join(g.Data, keyFile) }

// keys returns the encryption keys of the secrets in the database: those of --secret-keys, otherwise those of the file. If
// there is no file, it is created with make; otherwise keys returns nil.
func (g *global) keys(make bool) (*keyring.Keyring, error) {
	if g.SecretKeys != "" {
		ring, err := keyring.Parse(g.SecretKeys)
		if err != nil {
			return nil, usageError{fmt.Errorf("--secret-keys: %w", err)}
		}
		return ring, nil
	}
	if !make {
		if _, err := os.Stat(g.keyPath()); errors.Is(err, fs.ErrNotExist) {
			return nil, nil //nolint:nilnil // no keys
		}
	} else if err := os.MkdirAll(g.Data, 0o700); err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	return keyring.OpenFile(g.keyPath())
}

// explainKeys adds to an error about a missing key what to do about it.
func (g *global) explainKeys(err error) error {
	if !errors.Is(err, keyring.ErrUnknownKey) {
		return err
	}
	where := "FORMSVC_SECRET_KEYS doesn't have"
	if g.SecretKeys == "" {
		where = g.keyPath() + " doesn't have"
		if _, statErr := os.Stat(g.keyPath()); statErr != nil {
			where = "there is no " + g.keyPath() + " with"
		}
	}
	return fmt.Errorf("%w\n\nThe secrets in this database are encrypted, and %s the key for them.\n"+
		"Copy the file %s from the data directory (--data) of the node that created it,\n"+
		"or set FORMSVC_SECRET_KEYS to the value on that node", err, where, keyFile)
}

type secretsCmd struct {
	RotateKey rotateKeyCmd `cmd:"" name:"rotate-key" help:"Encrypt the secrets in the database with a new key while servers keep running. Copy the file secret.keys to all nodes with their own data directory right away: until then their deliveries wait."`
}

type rotateKeyCmd struct {
	DropOld bool `name:"drop-old" help:"Remove the old keys from the file afterwards. Keep a copy of the old file: older backups of the database need it."`
}

// keyGrace is how long writes of running servers may take that have read the file before it had the new key.
const keyGrace = 2500 * time.Millisecond

// Run adds a key to the key file and encrypts every secret with it. It doesn't change keys in the environment.
func (c *rotateKeyCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	if g.SecretKeys != "" && c.DropOld {
		return usageError{errors.New("--drop-old: remove the keys from FORMSVC_SECRET_KEYS yourself")}
	}
	if err := g.existing(ctx); err != nil {
		return err
	}
	ring, err := g.keys(false)
	if err != nil {
		return err
	}
	if ring == nil {
		return fmt.Errorf("there is no key file %s, so there is no key to rotate", g.keyPath())
	}
	s, err := g.openWith(ctx, ring, true) // also checks that no key is missing
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if g.SecretKeys != "" {
		return c.reseal(ctx, s, std, ring.Primary())
	}
	if _, err := keyring.AddKey(g.keyPath()); err != nil {
		return err
	}
	_ = ring.Seal("") // reads the file
	id := ring.Primary()
	std.note("Added key %s as the first one in %s.", id, g.keyPath())
	if !sleep(ctx, keyGrace) {
		return ctx.Err()
	}
	if err := c.reseal(ctx, s, std, id); err != nil {
		return err
	}
	if !c.DropOld {
		std.note("The old keys stay in the file; --drop-old removes them.")
		return nil
	}
	if ring.Primary() != id {
		return errors.New("another rotation is running; no key was removed")
	}
	if _, err := keyring.RemoveKeys(g.keyPath(), id); err != nil {
		return err
	}
	std.note("The old keys are removed from the file.")
	return nil
}

func (c *rotateKeyCmd) reseal(ctx context.Context, s store, std streams, id string) error {
	n, err := s.RotateSecrets(ctx)
	if err != nil {
		return fmt.Errorf("the secrets of %d webhooks were encrypted with key %s, then: %w", n, id, err)
	}
	std.note("Encrypted the secrets of %d webhooks with key %s.", n, id)
	return nil
}
