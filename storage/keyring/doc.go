// Package keyring encrypts what a store must keep but nobody who gets hold of a
// copy of the database may read: the secrets of webhooks.
//
// A [Keyring] has one or more keys. The first one seals, all of them open, so
// that a key can be exchanged while everything runs: see [AddKey]. [OpenFile]
// reads the keys from a file and makes that file on first use; [Parse] and [New]
// take them from anywhere else.
//
// # What is stored
//
// A sealed value is one line of printable text without spaces:
//
//	s1.<key id>.<base64url of nonce, ciphertext and tag, without padding>
//
// It is made with AES-256-GCM, a random nonce of 96 bits and a tag of 128. The
// additional data is a list of texts, each with its length in bytes before it as
// 8 bytes, big-endian: "formsvc keyring s1", the key id, then the context that
// the caller gave, which says where the value belongs. A value that was copied
// to another place, such as another row, does not open there. A key should seal
// no more than 2³² values.
//
// A nil Keyring stores "p1." and then the plain text as it is, so that a store
// works without keys and can be given some later. Every Keyring opens both
// forms; one that has keys never seals in the second. A value in neither form is
// an error: what was stored before there were any must be converted first.
//
// # What it is good for
//
// It keeps the values secret from whoever reads the database, a backup or a disk
// without the keys. It does not protect from whoever can write to the database:
// he can put a plain value of his own in the place of a sealed one, or an older
// value of the same row. The length of a value can be seen.
package keyring
