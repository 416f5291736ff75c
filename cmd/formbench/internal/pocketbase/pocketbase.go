// Package pocketbase is what formbench and its PocketBase agree on: how that is
// started, and what it keeps. It starts as a server of formbench does: it reads a
// [Config] as JSON from its standard input, writes a [Ready] to its standard
// output and ends when its input does.
package pocketbase

// Command is the argument that makes the program of the module peers PocketBase.
const Command = "pocketbase"

// A Config says what to serve.
type Config struct {
	Dir     string // of its data; what a first start needs is made there
	Full    bool   // synchronous is FULL instead of its default NORMAL
	Profile string // file for a CPU profile
}

// A Ready says where, and the token of a superuser.
type Ready struct{ Addr, Token string }

// The collections. Anyone may use all but Private, which has the fields of
// Responses and needs the token.
const (
	Responses  = "responses"
	Private    = "private"
	Events     = "events"
	Deliveries = "deliveries"
	Files      = "files"
)

// Database is the file in the directory that has the collections.
const Database = "data.db"
