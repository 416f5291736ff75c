// Package proc reads CPU times and memory of processes and of the machine from /proc. It
// works on Linux only.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc, the same on all usual architectures.
const tick = 10 * time.Millisecond

// A Usage is CPU time used so far.
type Usage struct {
	At      time.Time
	Server  time.Duration
	Self    time.Duration // this process
	Machine time.Duration // all processes and the kernel
}

// ReadUsage reads the CPU times of a server, of this process and of the machine.
func ReadUsage(server int) (u Usage, err error) {
	if u.Server, err = processTime(strconv.Itoa(server)); err != nil {
		return u, err
	}
	if u.Self, err = processTime("self"); err != nil {
		return u, err
	}
	u.At = time.Now()
	u.Machine, err = machineTime()
	return u, err
}

// Times are the CPU times of several processes.
type Times struct {
	At      time.Time
	Each    []time.Duration
	Self    time.Duration // this process
	Machine time.Duration // all processes and the kernel
}

// ReadTimes reads them now. 0 stands for a process that there isn't, which
// uses nothing.
func ReadTimes(pids []int) (p Times, err error) {
	p.Each = make([]time.Duration, len(pids))
	for i, pid := range pids {
		if pid == 0 {
			continue
		}
		if p.Each[i], err = processTime(strconv.Itoa(pid)); err != nil {
			return p, err
		}
	}
	if p.Self, err = processTime("self"); err != nil {
		return p, err
	}
	p.At = time.Now()
	p.Machine, err = machineTime()
	return p, err
}

// processTime returns utime and stime of a process (proc_pid_stat(5)).
func processTime(pid string) (time.Duration, error) {
	b, err := os.ReadFile("/proc/" + pid + "/stat") //nolint:gosec // a number, or self
	if err != nil {
		return 0, fmt.Errorf("CPU time of a process: %w", err)
	}
	// The second field is the program's name in parentheses, which may have any
	// characters; the next one after it is number 3.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("CPU time of a process: /proc has an unknown format")
	}
	return ticks(fields[11:13])
}

// machineTime returns what all CPUs spent on anything (proc_stat(5)), without
// what the host took from us.
func machineTime() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("CPU time of the machine: %w", err)
	}
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	f := bytes.Fields(line) // cpu user nice system idle iowait irq softirq …; user has guest in it
	if len(f) < 8 {
		return 0, errors.New("CPU time of the machine: /proc has an unknown format")
	}
	return ticks([][]byte{f[1], f[2], f[3], f[6], f[7]})
}

func ticks(fields [][]byte) (time.Duration, error) {
	var sum int64
	for _, f := range fields {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}

// PeakMemory returns the most memory that a process ever had resident, in bytes.
func PeakMemory(pid int) (int64, error) {
	kib, err := procField(fmt.Sprintf("/proc/%d/status", pid), "VmHWM")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(kib, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("peak memory: %w", err)
	}
	return n << 10, nil
}

// procField returns the value of the first line "name : value".
func procField(path, name string) (string, error) {
	b, err := os.ReadFile(path) //nolint:gosec // a file of /proc
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no %s", path, name)
}

// A Machine is where the figures are from.
type Machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// ThisMachine says where it runs, as far as that can be found out.
func ThisMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	m.Model, _ = procField("/proc/cpuinfo", "model name") // not every architecture tells
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	return m
}

// InMemory reports whether the directory is on a file system without a disk,
// where syncing costs nothing.
func InMemory(dir string) bool {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false
	}
	longest, memory := -1, false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // device, mount point, type, …
		if len(f) < 3 || len(f[1]) < longest || !strings.HasPrefix(dir+"/", strings.TrimSuffix(f[1], "/")+"/") {
			continue
		}
		longest, memory = len(f[1]), f[2] == "tmpfs" || f[2] == "ramfs"
	}
	return memory
}

// ResidentMB returns the memory that a process has resident.
func ResidentMB(pid int) (float64, error) {
	kib, err := procField(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(kib, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory: %w", err)
	}
	return float64(n<<10) / 1e6, nil
}
