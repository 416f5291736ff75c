package pg

import (
	"os"
	"path/filepath"
	"strings"
)

// Limit limits every wait.
const Limit = limit

// Dir returns the directory of the server.
func (s *Server) Dir() string { return s.dir }

// Processes returns the number of processes of the server with that directory.
func Processes(dir string) int { return len(processesIn(filepath.Join(dir, "data"))) }

// Left returns the number of the server's processes, and of the shared memory segments
// that its first process created: 0 or 1.
func (s *Server) Left() (processes, segments int) {
	if id := last(s.status(6)); id != "" {
		b, _ := os.ReadFile("/proc/sysvipc/shm") // an unreadable file counts as empty
		for _, line := range strings.Split(string(b), "\n")[1:] {
			if fields := strings.Fields(line); len(fields) > 1 && fields[1] == id {
				segments++
			}
		}
	}
	return Processes(s.dir), segments
}
