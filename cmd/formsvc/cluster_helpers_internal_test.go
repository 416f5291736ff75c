//go:build long

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/csv"
	"encoding/hex"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
)

// clusterDir has the example files for several nodes.
const clusterDir = "../../examples/cluster"

// clusterNodes is the number of servers in haproxy.cfg.
const clusterNodes = 3

// A cluster is three nodes on one Postgres database and one bucket.
type cluster struct {
	*shell

	bucket *s3test.Server
	public string // where HAProxy listens
	key    string
	flags  []string
	addrs  []string // of the nodes, which keep them over restarts
	nodes  []*service
}

// newCluster starts the nodes with the environment of formsvc.env.example, except its addresses.
func newCluster(t testing.TB, flags ...string) *cluster {
	t.Helper()
	addrs := freeAddrs(t, clusterNodes+1)
	c := &cluster{
		shell: onPostgres(t), bucket: s3test.Start(t), public: addrs[clusterNodes],
		addrs: addrs[:clusterNodes], nodes: make([]*service, clusterNodes),
	}
	c.flags = append(flags, "--blobs", c.bucket.URL())
	c.env = append(exampleEnv(t), "AWS_ACCESS_KEY_ID="+c.bucket.AccessKey, "AWS_SECRET_ACCESS_KEY="+c.bucket.SecretKey, "FORMSVC_BASE_URL=http://"+c.public)
	for i := range c.nodes {
		c.start(t, i)
	}
	c.key = c.nodes[0].key
	return c
}

// start starts a node and waits until it serves.
func (c *cluster) start(t testing.TB, i int) {
	t.Helper()
	c.nodes[i] = c.spawn(t, append(slices.Clone(c.flags), "--addr", c.addrs[i])...)
}

// exampleEnv returns the variables of formsvc.env.example without addresses, and with a generated key.
func exampleEnv(t testing.TB) []string {
	t.Helper()
	text := must(os.ReadFile(filepath.Join(clusterDir, "formsvc.env.example")))
	var env []string
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		value = strings.Trim(value, "'")
		switch name {
		case "FORMSVC_DB", "FORMSVC_BLOBS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "FORMSVC_BASE_URL":
			continue
		case "FORMSVC_SECRET_KEYS":
			var key [32]byte
			_, _ = rand.Read(key[:]) // never fails
			value = hex.EncodeToString(key[:])
		case "FORMSVC_TRUSTED_PROXY":
			value = "127.0.0.1/32" // where HAProxy connects from
		}
		env = append(env, name+"="+value)
	}
	return env
}

// givenAddrs are the addresses that freeAddrs has returned.
var givenAddrs sync.Map

// freeAddrs returns unused addresses, each only once. They are below the range of ephemeral ports, so that they stay free
// while a node is down.
func freeAddrs(t testing.TB, n int) []string {
	t.Helper()
	var list []string
	for tries := 0; len(list) < n; tries++ {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+mathrand.IntN(17000)))
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
		if err != nil {
			if tries > 100 {
				t.Fatal(err)
			}
			continue
		}
		defer func() { _ = l.Close() }() // when all are found
		if _, given := givenAddrs.LoadOrStore(addr, true); !given {
			list = append(list, addr)
		}
	}
	return list
}

// A balancer is HAProxy with the configuration of the examples.
type balancer struct {
	*service

	socket string   // of its commands
	addrs  []string // of the nodes, in their order
}

// serversOfExample are the names and addresses of the nodes in haproxy.cfg.
var serversOfExample = []struct{ name, addr string }{
	{"a", "10.0.0.11:8080"}, {"b", "10.0.0.12:8080"}, {"c", "10.0.0.13:8080"},
}

// balance starts HAProxy in front of the nodes and waits until it sends requests to each.
func (c *cluster) balance(t testing.TB) *balancer {
	t.Helper()
	b := &balancer{service: &service{shell: c.shell, url: "http://" + c.public, key: c.key}, socket: filepath.Join(t.TempDir(), "s"), addrs: c.addrs}
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	noError(t, os.WriteFile(config, b.config(t, c.public), 0o600))
	var said transcript
	cmd := exec.Command(lookFor(t, "haproxy", "/usr/sbin/haproxy"), "-db", "-f", config)
	cmd.Stdout, cmd.Stderr = &said, &said
	noError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); t.Failed() {
			t.Logf("haproxy said:\n%s", said.String()[max(0, len(said.String())-10_000):])
		}
	})
	for i := range b.addrs {
		b.up(t, i)
	}
	return b
}

// config returns haproxy.cfg with other addresses, and without the settings that need root unless the test runs as root.
func (b *balancer) config(t testing.TB, public string) []byte {
	t.Helper()
	file := must(os.ReadFile(filepath.Join(clusterDir, "haproxy.cfg")))
	replace := map[string]string{"bind :80\n": "bind " + public + "\n", "log /dev/log": "log stdout format raw", "/run/haproxy/admin.sock": b.socket}
	for i, s := range serversOfExample {
		replace["server "+s.name+" "+s.addr+"\n"] = "server " + s.name + " " + b.addrs[i] + "\n"
	}
	if os.Getuid() != 0 {
		replace["\tchroot /var/lib/haproxy\n"], replace["\tuser haproxy\n"], replace["\tgroup haproxy\n"] = "", "", ""
	}
	text := string(file)
	for old, fresh := range replace {
		if !strings.Contains(text, old) {
			t.Fatalf("haproxy.cfg has no %q", old)
		}
		text = strings.ReplaceAll(text, old, fresh)
	}
	return []byte(text)
}

// stats returns HAProxy's statistics of a backend: by server name, the values by column. It is nil while HAProxy starts.
func (b *balancer) stats(t testing.TB, backend string) map[string]map[string]string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", b.socket)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	must(io.WriteString(conn, "show stat\n"))
	in := bufio.NewReader(conn)
	_, _ = in.Discard(len("# ")) // a missing prefix shows up in the columns
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("show stat: %v", err)
	}
	servers := make(map[string]map[string]string)
	for _, row := range rows[1:] {
		if row[0] != backend {
			continue
		}
		values := make(map[string]string)
		for i, column := range rows[0] {
			values[column] = row[i]
		}
		servers[row[1]] = values
	}
	return servers
}

// status returns HAProxy's status of a node, such as UP.
func (b *balancer) status(t testing.TB, backend string, node int) string {
	t.Helper()
	return b.stats(t, backend)[serversOfExample[node].name]["status"]
}

// up waits until HAProxy's checks have found a node ready.
func (b *balancer) up(t testing.TB, node int) {
	t.Helper()
	until(t, "haproxy takes a node for ready", func() bool {
		s := b.stats(t, "ready")[serversOfExample[node].name]
		return s["status"] == "UP" && s["check_status"] == "L7OK"
	})
}

// total adds up a column of the servers of a backend.
func (b *balancer) total(t testing.TB, column string) (sum int) {
	t.Helper()
	for name, values := range b.stats(t, "ready") {
		if n, err := strconv.Atoi(values[column]); err == nil && name != "BACKEND" {
			sum += n
		}
	}
	return sum
}
