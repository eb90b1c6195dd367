module github.com/lambdalock/lambdalock/stores/redisstore/redisquorum

go 1.25

replace (
	github.com/lambdalock/lambdalock => ../../..
	github.com/lambdalock/lambdalock/stores/redisstore => ..
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/lambdalock/lambdalock v0.0.0
	github.com/lambdalock/lambdalock/stores/redisstore v0.0.0
	github.com/redis/go-redis/v9 v9.17.3
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
)
