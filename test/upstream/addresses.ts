/** Hosts that lead to this machine or its network, in every spelling that a URL parser takes. */
export const insideHosts =
  `127.0.0.1 127.1 127.0.1 2130706433 0x7f.1 0x7f000001 0177.0.0.1 017700000001 127.000.000.001 0.0.0.0 0
  １２７.０.０.１ ①②⑦.⓪.⓪.① 127。0。0。1 127.0.0.1. localhost localhost. LOCALHOST api.localhost %31%32%37.0.0.1 [::1] [::]
  [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [fe80::1] [fd00:ec2::254]
  [fc00::1] [ff02::1] 100.64.0.1 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 224.0.0.1 255.255.255.255`.split(/\s+/)
