module github.com/lambdalock/lambdalock/stores/redisstore

go 1.25

replace github.com/lambdalock/lambdalock => ../..

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/lambdalock/lambdalock v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.17.3
	github.com/yuin/gopher-lua v1.1.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
)
