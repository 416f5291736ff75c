package pg

import (
	"os"
	"path/filepath"
	"strings"
)

// Limit bounds everything that is waited for.
const Limit = limit

// Dir returns the directory of the server.
func (s *Server) Dir() string { return s.dir }

// Processes returns how many processes there are of a server with a directory.
func Processes(dir string) int { return len(processesIn(filepath.Join(dir, "data"))) }

// Left returns how many processes the server has, and how many of the pieces of
// shared memory that its first one made: 0 or 1.
func (s *Server) Left() (processes, segments int) {
	if id := last(s.status(6)); id != "" {
		b, _ := os.ReadFile("/proc/sysvipc/shm") // nothing is found in what can't be read
		for _, line := range strings.Split(string(b), "\n")[1:] {
			if fields := strings.Fields(line); len(fields) > 1 && fields[1] == id {
				segments++
			}
		}
	}
	return Processes(s.dir), segments
}
