package egress_test

import (
	"strings"
	"testing"
)

// The texts after ErrRefused.
const (
	byURL      = "the URL cannot be parsed"
	byScheme   = "the scheme is not http or https"
	byUser     = "the URL has a user name or a password"
	byFragment = "the URL has a fragment"
	byNoHost   = "the URL has no host"
	byASCII    = "the host is not in ASCII: write it in its xn-- form"
	byHost     = "the host is neither a name nor an IP address"
	byNumber   = "the host ends in a number, but is not four decimal numbers without leading zeros"
	byNew      = "the policy was not made by New"
	byNetwork  = "the network is not tcp4 or tcp6"
	byParse    = "the address cannot be parsed"
	byZone     = "the address has a zone"
	byPort     = "the port is not 80, 443 or at least 1024"
	byAddress  = "the address is not public"
)

// spellings are notations of destinations that must not be reached, if every name resolves to
// loopback. Each has the rule by which CheckURL refuses it. CANARY is replaced by a port.
var spellings = []struct {
	category string
	rule     string
	urls     []string
}{
	{"IPv4", byAddress, hosts(`127.0.0.1 127.0.0.2 127.127.127.127 127.255.255.255 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1
		172.31.255.254 192.168.1.1 100.64.0.1 169.254.1.1 192.0.0.8 198.18.0.1 192.88.99.1 224.0.0.1 239.255.255.250
		240.0.0.1 255.255.255.255`)},
	{"metadata", byAddress, append(hosts(`169.254.169.254 [fd00:ec2::254] [::ffff:169.254.169.254]`), plain(`
		http://169.254.169.254/latest/meta-data/ http://169.254.170.2/v2/credentials https://169.254.169.254:443/
		http://100.100.100.200/latest/meta-data/ http://192.0.0.192/latest/ http://168.63.129.16/machine
		http://168.63.129.16:32526/ http://[fd00:ec2::254]/latest/meta-data/ http://[fd00:ec2::23]/v1/credentials
		http://[fd20:ce::254]/computeMetadata/v1/ http://[fd00:42::42]/conf http://[fe80::a9fe:a9fe]/openstack
		http://[::ffff:169.254.169.254]/ http://[::ffff:a9fe:a9fe]/ http://[64:ff9b::a9fe:a9fe]/
		http://[::ffff:168.63.129.16]/ http://[::ffff:100.100.100.200]/`)...)},
	{"decimal", byNumber, hosts(`2130706433 3232235521 2852039166 167772161 0 1 4294967295 6425673729
		018446744071692124161`)},
	{"octal", byNumber, hosts(`0177.0.0.1 0177.0000.0000.0001 00000177.0.0.1 017700000001 0300.0250.0.1 127.0.0.01
		127.00.0.1 010.0.0.1 0251.0376.0251.0376 08.0.0.1 8.8.8.08`)},
	{"hexadecimal", byNumber, hosts(`0x7f000001 0x7f.0.0.1 0x7f.0x0.0x0.0x1 0X7F.1 0x7f.1 0xA9FEA9FE 0xa9.0xfe.0xa9.0xfe
		0xc0a80001 127.0.0.0x1 127.0x 0x 0x100000000007f000001 a.0xf 0x7f.0.0.0X1`)},
	{"short", byNumber, hosts(`127.1 127.0.1 10.1 192.168.257 172.1048577 169.254.43518 0.0 127.16777215 8.8`)},
	{"not quite IPv4", byNumber, hosts(`127.0.0.1.1 256.0.0.1 127.0.0.256 999.1 1.2.3.4.5 127.0.0.00000000001`)},
	{"trailing dot", byNumber, hosts(`127.0.0.1. 2130706433. 127.1. 169.254.169.254. 10.0.0.1. 017700000001. 8.8.8.8.`)},
	{"trailing dot, hexadecimal", byNumber, hosts(`0x7f000001. 0x7f.1. receiver.0x7f.`)},
	{"empty label", byHost, hosts(`.. 127.0.0.1.. .127.0.0.1 127..0.0.1 localhost.. .localhost`)},

	{"root", byHost, hosts(`.`)},
	{"full-width digits and dots", byASCII, hosts(`①②⑦.⓪.⓪.① １２７.０.０.１ 127。0。0。1 127．0．0．1 127｡0｡0｡1
		１２７。０。０。１ ⑩.0.0.1 ₁₂₇.0.0.1 ¹²⁷.⁰.⁰.¹ 𝟏𝟐𝟕.𝟎.𝟎.𝟏 １６９.２５４.１６９.２５４ 0ｘ7f.1 0ｘ７ｆ０００００１ 127.0.0.1。example
		%ef%bc%91%ef%bc%92%ef%bc%97.0.0.1 %e2%91%a0%e2%91%a1%e2%91%a6.0.0.1 127%e3%80%820%e3%80%820%e3%80%821`)},
	{"full-width, short or long", byASCII, hosts(`①②⑦.① １２７.１ ２１３０７０６４３３ 127.0.0.1。 ٣٢٣٢٢٣٥٥٢١。١ ١٢٧.example`)},
	{"other letters", byASCII, hosts(`ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ loc𝐚lhost localhoſt ＬＯＣＡＬＨＯＳＴ localhost。 münchen.example
		b%c3%bccher.example`)},

	{"IPv6", byAddress, hosts(`[::1] [0:0:0:0:0:0:0:1] [0000::0001] [::0:1] [::0.0.0.1] [::] [0::0] [0:0:0:0:0:0:0:0] [::0.0.0.0]
		[fc00::1] [fd00::1] [fdff:ffff:ffff::1] [fe80::1] [febf::1] [fec0::1] [feff::1] [ff02::1] [ff0e::1] [100::1]
		[100:0:0:1::1] [1fff::1] [4000::1] [5f00::1] [2001:db8::1] [2001:2::1] [2001:20::1] [3fff::1] [2620:4f:8000::1]`)},
	{"IPv4-mapped", byAddress, hosts(`[::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:7F00:0001] [0:0:0:0:0:ffff:127.0.0.1]
		[0000:0000:0000:0000:0000:FFFF:7f00:0001] [::ffff:10.0.0.1] [::ffff:0.0.0.0] [::ffff:c0a8:1]`)},
	{"IPv4-compatible", byAddress, hosts(`[::127.0.0.1] [::7f00:1] [::10.0.0.1] [::a9fe:a9fe] [0:0:0:0:0:0:127.0.0.1]`)},
	{"IPv4-translated", byAddress, hosts(`[::ffff:0:127.0.0.1] [::ffff:0:7f00:1] [::ffff:0:a9fe:a9fe]`)},
	{"NAT64", byAddress, hosts(`[64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] [0064:FF9B::a9fe:a9fe]
		[64:ff9b::8.8.8.8] [64:ff9b:1::127.0.0.1] [64:ff9b:1:ffff:ffff:ffff:7f00:1]`)},
	{"6to4", byAddress, hosts(`[2002:7f00:1::] [2002:7f00:0001::1] [2002:a00:1::1] [2002:a9fe:a9fe::] [2002:808:808::1]`)},
	{"Teredo", byAddress, hosts(`[2001::1] [2001:0:808:808::80ff:fffe] [2001:0:4136:e378:8000:63bf:f5ff:fffe]`)},
	{"ISATAP", byAddress, hosts(`[fe80::5efe:127.0.0.1] [fe80::200:5efe:10.0.0.1] [2606:4700::5efe:127.0.0.1]
		[2606:4700::200:5efe:a9fe:a9fe] [2606:4700:1:2:0:5efe:7f00:1]`)},
	{"zone", byZone, hosts(`[fe80::1%25eth0] [fe80::1%251] [fe80::1%25lo] [fe80::a9fe:a9fe%25lo] [ff02::1%25lo] [::1%25lo]
		[2606:4700::1111%25lo] [fe80::1%25%6c%6f]`)},
	{"zone of an IPv4-mapped address", byZone, hosts(`[::ffff:127.0.0.1%25lo]`)},

	{"user", byUser, plain(`http://user@127.0.0.1:CANARY/ http://user:password@127.0.0.1:CANARY/ http://@127.0.0.1:CANARY/ http://a@b@127.0.0.1:CANARY/
		http://:@127.0.0.1:CANARY/ http://receiver.example@127.0.0.1:CANARY/ http://receiver.example:80@127.0.0.1:CANARY/
		http://receiver.example%2F@127.0.0.1:CANARY/ http://127.0.0.1@receiver.example:CANARY/
		http://user@[::ffff:127.0.0.1]:CANARY/`)},
	{"fragment", byFragment, plain(`http://127.0.0.1:CANARY/# http://127.0.0.1:CANARY#@receiver.example/
		http://127.0.0.1:CANARY/#receiver.example http://receiver.example:CANARY#@127.0.0.1/ http://[::ffff:127.0.0.1]:CANARY?#`)},
	{"no host, none seen", byNoHost, plain(`http: http:// https:// http:127.0.0.1 http:/127.0.0.1/ http:///127.0.0.1/
		http:////127.0.0.1/ http:\\127.0.0.1\ http:/\127.0.0.1/ http://: https://: http://?127.0.0.1 https:localhost`)},
	{"no host, localhost meant", byNoHost, plain(`http://:CANARY/ https://:CANARY/ http://:80 https://:22/`)},
	{"not a URL", byURL, append(plain(`127.0.0.1:CANARY http://[::1 http://::1/ http://::1:CANARY/ http://[127.0.0.1]:CANARY/
		http://127.0.0.1:port/ http://[::1]CANARY/ http://127%2e0%2e0%2e1:CANARY/ http://%31%32%37.0.0.1:CANARY/
		http://%6c%6f%63alhost:CANARY/ http://127.0.0.1%00.example/ http://127.0.0.1:-1/ http://127.0.0.1:80:CANARY/
		http://[::1]:80:CANARY/ http://[v1.127]/ http://receiver.example\@127.0.0.1:CANARY/
		http://127.0.0.1\.receiver.example/ http://127.0.0.1:CANARY\@receiver.example/ http://[fe80::1%lo]/ http://[::1%]/
		http://[fe80::1%25]/ http://[::ffff:127.1]/ http://[::ffff:0x7f.0.0.1]/ http://[[::1]]/ http://[]/ ://127.0.0.1/
		http+unix://%2Fvar%2Frun%2Fdocker.sock/`),
		" http://127.0.0.1:CANARY/", "http://127.0.0.1:CANARY /", "http://127.0.0.1\t:CANARY/", "http://127.0.0.1:CANARY/\n",
		"http://127.0.0.1\r\n.receiver.example/", "http://127.0.0.1\x00:CANARY/", "ht\ttp://127.0.0.1/")},
	{"not a name", byHost, hosts(`127.0.0.1;receiver.example 127.0.0.1,receiver.example (127.0.0.1) 127.0.0.1' $127.0.0.1
		127.0.0.1&receiver.example +127.0.0.1 * ! ~ <127.0.0.1> "127.0.0.1" =127.0.0.1 localhost%2500 127.0.0.1%2541`)},
	{"localhost names", byAddress, hosts(`localhost LOCALHOST LocalHost localhost. localhost.localdomain hook.localhost
		ip6-localhost ip6-loopback 127.0.0.1.receiver.example 7f000001.receiver.example 0x7f000001.receiver.example
		metadata.google.internal instance-data host.docker.internal _hook.receiver.example xn--mnchen-3ya.example`)},
	{"upper case", byAddress, plain(`HTTP://127.0.0.1:CANARY/ Http://LOCALHOST:CANARY/ hTTpS://127.0.0.1:CANARY/
		HTTPS://[::FFFF:7F00:1]:CANARY/ HTTP://[FE80::1]/ HTTP://[FC00::1]/`)},

	{"port", byPort, plain(`http://127.0.0.1:0/ http://127.0.0.1:22/ http://127.0.0.1:25/ http://8.8.8.8:0/ http://8.8.8.8:00/
		http://8.8.8.8:1/ http://8.8.8.8:21/ http://8.8.8.8:22/ http://8.8.8.8:00022/ http://8.8.8.8:23/ http://8.8.8.8:25/
		http://8.8.8.8:79/ http://8.8.8.8:81/ http://8.8.8.8:442/ http://8.8.8.8:444/ http://8.8.8.8:587/ http://8.8.8.8:1023/
		https://8.8.8.8:22/ https://[2606:4700::1111]:22/ http://[::ffff:8.8.8.8]:25/ http://receiver.example:0/
		http://receiver.example:22/ http://receiver.example:25/ https://receiver.example:993/ http://localhost:22/`)},
	{"no port", byPort, plain(`http://8.8.8.8:65536/ http://8.8.8.8:65616/ http://receiver.example:99999999999999999999/`)},
	{"port that overflows", byPort, plain(`http://receiver.example:4294967376/`)},
	{"scheme", byScheme, append(plain(`ftp://127.0.0.1:CANARY/ file:///etc/passwd gopher://127.0.0.1:CANARY/_x
		dict://127.0.0.1:CANARY/ ldap://127.0.0.1:CANARY/ ws://127.0.0.1:CANARY/ wss://127.0.0.1:CANARY/ data:text/plain,x
		javascript:alert(1) jar:http://127.0.0.1:CANARY!/ unix:///var/run/docker.sock http+unix:/var/run/docker.sock httpx://127.0.0.1/
		localhost:CANARY //127.0.0.1:CANARY/ /127.0.0.1 127.0.0.1 localhost mailto:a@localhost`), "")},
}

// hosts returns a URL to the canary's port for each host in a list.
func hosts(list string) []string {
	urls := strings.Fields(list)
	for i := range urls {
		urls[i] = "http://" + urls[i] + ":CANARY/hook"
	}
	return urls
}

func plain(list string) []string { return strings.Fields(list) }

// TestSpellings checks every spelling with CheckURL and with a request, for which Control is asked if net/http would connect.
func TestSpellings(t *testing.T) {
	t.Parallel()
	loopback := fixed{addrs: addrs("127.0.0.1", "::1")}
	p := newPolicy(t, loopback)
	for _, s := range spellings {
		for _, url := range s.urls {
			url = strings.ReplaceAll(url, "CANARY", "8080")
			if err := p.CheckURL(t.Context(), url); !isRule(err, s.rule) {
				t.Errorf("%s: CheckURL(%q): %v, want %s", s.category, url, err, s.rule)
			}
			allowed, err := send(p, loopback, url)
			if err == nil || allowed.IsValid() {
				t.Errorf("%s: %q: request: %v, connected to %v", s.category, url, err, allowed)
			}
		}
	}
}
