// Package pocketbase is shared by formbench and its PocketBase process. The process starts like a server of formbench:
// it reads a [Config] as JSON from its standard input, writes a [Ready] to its standard output and ends when its input
// does.
package pocketbase

// Command is the argument that makes the program of the module peers a PocketBase server.
const Command = "pocketbase"

// A Config configures PocketBase.
type Config struct {
	Dir     string // of its data; a first start creates it
	Full    bool   // synchronous is FULL instead of its default NORMAL
	Profile string // file for a CPU profile
}

// A Ready has the server's address, and the token of a superuser.
type Ready struct{ Addr, Token string }

// The collections. Anyone may use all but Private, which has the fields of Responses and needs the token.
const (
	Responses  = "responses"
	Private    = "private"
	Events     = "events"
	Deliveries = "deliveries"
	Files      = "files"
)

// Database is the file in the directory that has the collections.
const Database = "data.db"
