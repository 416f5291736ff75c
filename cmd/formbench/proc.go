package main

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

// A usage is CPU time used so far.
type usage struct {
	at        time.Time
	server    time.Duration
	generator time.Duration // this process
	machine   time.Duration // all processes and the kernel
}

func readUsage(server int) (u usage, err error) {
	if u.server, err = processTime(strconv.Itoa(server)); err != nil {
		return u, err
	}
	if u.generator, err = processTime("self"); err != nil {
		return u, err
	}
	u.at = time.Now()
	u.machine, err = machineTime()
	return u, err
}

// processTimes are the CPU times of several processes.
type processTimes struct {
	at      time.Time
	each    []time.Duration
	self    time.Duration // this process
	machine time.Duration // all processes and the kernel
}

// readProcesses reads them now. 0 stands for a process that there isn't, which
// uses nothing.
func readProcesses(pids []int) (p processTimes, err error) {
	p.each = make([]time.Duration, len(pids))
	for i, pid := range pids {
		if pid == 0 {
			continue
		}
		if p.each[i], err = processTime(strconv.Itoa(pid)); err != nil {
			return p, err
		}
	}
	if p.self, err = processTime("self"); err != nil {
		return p, err
	}
	p.at = time.Now()
	p.machine, err = machineTime()
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

// peakMemory returns the most memory that a process ever had resident, in bytes.
func peakMemory(pid int) (int64, error) {
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

// A machine is where the figures are from.
type machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	m.Model, _ = procField("/proc/cpuinfo", "model name") // not every architecture tells
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	return m
}

// inMemory reports whether the directory is on a file system without a disk,
// where syncing costs nothing.
func inMemory(dir string) bool {
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
