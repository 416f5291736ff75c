package main

import (
	"os"
	"os/user"
	"strconv"
)

// actor is who the audit trail names for what a command does: the user of the
// operating system, by name if there is one.
func actor() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "cli uid " + strconv.Itoa(os.Getuid())
	}
	return "cli " + u.Username
}

// serveActor is who the audit trail names for what a server does by itself.
const serveActor = "serve"
