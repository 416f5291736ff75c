// Package proc reads CPU times and memory of processes and of the machine from /proc. It
// works on Linux only.
package proc

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Times are CPU times used so far. Those of processes come from the kernel in steps of 10 ms.
type Times struct {
	At      time.Time
	Each    []time.Duration // by process
	Self    time.Duration   // this process
	Machine time.Duration   // all processes and the kernel
}

// ReadTimes reads the current CPU times. 0 stands for no process, which uses nothing.
func ReadTimes(pids ...int) (t Times, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return t, fmt.Errorf("CPU times: %w", err)
	}
	t.Each = make([]time.Duration, len(pids))
	for i, pid := range pids {
		if pid == 0 {
			continue
		}
		if t.Each[i], err = processTime(fs, pid); err != nil {
			return t, err
		}
	}
	if t.Self, err = processTime(fs, os.Getpid()); err != nil {
		return t, err
	}
	t.At = time.Now()
	all, err := fs.Stat()
	if err != nil {
		return t, fmt.Errorf("CPU time of the machine: %w", err)
	}
	c := all.CPUTotal
	t.Machine = seconds(c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ) // without the time that the host took
	return t, nil
}

func processTime(fs procfs.FS, pid int) (time.Duration, error) {
	p, err := fs.Proc(pid)
	if err != nil {
		return 0, fmt.Errorf("CPU time of a process: %w", err)
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, fmt.Errorf("CPU time of a process: %w", err)
	}
	return seconds(stat.CPUTime()), nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Since returns the time elapsed since before, and the CPU shares, in cores, of the processes, of this one and of
// everything else.
func (t *Times) Since(before *Times) (elapsed float64, each []float64, self, other float64) {
	elapsed = t.At.Sub(before.At).Seconds()
	self = (t.Self - before.Self).Seconds() / elapsed
	other = (t.Machine-before.Machine).Seconds()/elapsed - self
	for i := range t.Each {
		each = append(each, (t.Each[i]-before.Each[i]).Seconds()/elapsed)
		other -= each[i]
	}
	return elapsed, each, self, other
}

// MemoryMB returns the current and the peak resident memory of a process.
func MemoryMB(pid int) (now, peak float64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, fmt.Errorf("memory: %w", err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("memory: %w", err)
	}
	return float64(status.VmRSS) / 1e6, float64(status.VmHWM) / 1e6, nil
}

// PeakMB returns the peak resident memory of a process.
func PeakMB(pid int) (float64, error) {
	_, peak, err := MemoryMB(pid)
	return peak, err
}

// Machine describes the machine of the figures, as far as it is known: keys and values in turn.
func Machine() []string {
	model, kernel := "unknown", ""
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" { // not every architecture has a model name
			model = cpus[0].ModelName
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(b))
	}
	return []string{
		"cpu", fmt.Sprintf("%d × %s", runtime.NumCPU(), model), "goos", runtime.GOOS, "kernel", kernel,
		"goarch", runtime.GOARCH, "go", runtime.Version(),
	}
}

// InMemory reports whether the directory is on a file system without a disk,
// where syncing costs nothing.
func InMemory(dir string) bool {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return false
	}
	longest, memory := -1, false
	for _, m := range mounts {
		if len(m.MountPoint) >= longest && strings.HasPrefix(dir+"/", strings.TrimSuffix(m.MountPoint, "/")+"/") {
			longest, memory = len(m.MountPoint), m.FSType == "tmpfs" || m.FSType == "ramfs"
		}
	}
	return memory
}
