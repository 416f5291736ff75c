package postgres

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// Values come back as they were stored, whatever the database or role sets for sessions.
func TestSettingsOfTheDatabase(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t) + "&options=" + strings.ReplaceAll(url.QueryEscape("-c bytea_output=escape -c array_nulls=off -c transform_null_equals=on "+
		"-c client_encoding=latin1 -c DateStyle=German -c TimeZone=Asia/Kathmandu -c default_transaction_isolation=serializable"), "+", "%20")
	q := newQueue(t, openStore(t, dsn, nil))
	made := must(q.svc.Keys.Create(t.Context(), q.campaign.AccountID, formsvc.KeyInput{Name: "€", Permissions: formsvc.AllPermissions()}))
	if who, err := q.svc.Keys.Authenticate(t.Context(), made.Value); err != nil || who.KeyName != "€" {
		t.Errorf("got %+v, %v", who, err)
	}
	q.add(t)
	for options, want := range map[string]string{
		"&default_query_exec_mode=exec": "bytea_output is escape", "&synchronous_commit=off": "synchronous_commit is off",
	} {
		if _, err := Open(t.Context(), dsn+options, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", options, err)
		}
	}
}

// A session that is read-only, as on a server that was demoted, is used once. Readiness finds it, too.
func TestReadOnlySessionEnds(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgrestest.DSN(t), &Options{MaxConns: 1})
	q := newQueue(t, s)
	for name, call := range map[string]func() error{
		"write": func() error {
			_, err := q.svc.Accounts.Create(t.Context(), string(formsvc.NewID(q.campaign.CreatedAt)))
			return err
		},
		"ready": func() error { return q.svc.Ready(t.Context()) },
	} {
		must(s.db.ExecContext(t.Context(), "SET default_transaction_read_only = on"))
		if err := call(); !errors.Is(err, formsvc.ErrUnavailable) {
			t.Errorf("%s on a read-only session: %v", name, err)
		}
		if err := call(); err != nil {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}

// Behind a pooler, nothing is kept in a session, unless the data source name says so.
func TestPooler(t *testing.T) {
	t.Parallel()
	direct := postgrestest.DSN(t)
	dsn := must(url.Parse(direct))
	dsn.Host = otherPID(t, dsn.Host)
	for name, kept := range map[string]bool{direct: true, dsn.String(): false, dsn.String() + "&default_query_exec_mode=cache_statement": true} {
		if s := openStore(t, name, nil); (s.listener != nil) != kept {
			t.Errorf("%s: listens: %t", name, !kept)
		}
	}
}

// otherPID forwards connections, and changes the process that the server names.
func otherPID(t *testing.T, server string) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(to, client); _ = to.Close() }()
			go func() {
				defer func() { _ = client.Close() }()
				b := make([]byte, 64<<10)
				for n, err := to.Read(b); err == nil; n, err = to.Read(b) {
					if at := bytes.Index(b[:n], []byte("K\x00\x00\x00\x0c")); at >= 0 && at+9 <= n {
						b[at+8]++
					}
					_, _ = client.Write(b[:n])
				}
			}()
		}
	}()
	return l.Addr().String()
}
