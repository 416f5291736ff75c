// Package keyring encrypts what a store has to keep and nobody with a copy of the
// database may read: the secrets of webhooks.
//
// A [Keyring] has one or more keys. The first one seals, and all of them open, so you can
// replace a key while everything runs: see [AddKey]. [OpenFile] reads the keys from a
// file and creates that file on first use. [Parse] and [New] take keys from anywhere
// else.
//
// # Stored form
//
// A sealed value is one line of printable text without spaces:
//
//	s1.<key id>.<base64url of nonce, ciphertext and tag, without padding>
//
// It is encrypted with AES-256-GCM, a random 96-bit nonce and a 128-bit tag. The
// additional data is a list of texts, each preceded by its length in bytes as 8 bytes,
// big-endian. The texts are "formsvc keyring s1", the key id, and the caller's context,
// which says where the value belongs. A value copied to another place, such as another
// row, doesn't open there. A key should seal at most 2³² values.
//
// A nil Keyring stores "p1." followed by the plain text, so a store works without keys
// and can get keys later. Every Keyring opens both forms; one with keys always seals in
// the first. A value in neither form is an error: first convert raw values that were
// stored without this package.
//
// # What it protects against
//
// It keeps values secret from anyone who reads the database, a backup or a disk without
// the keys. It doesn't protect against anyone who can write to the database. They can
// replace a sealed value by a plain one of their own, or by an older value of the same
// row. The length of a value is visible.
package keyring
