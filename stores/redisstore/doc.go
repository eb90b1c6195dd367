// Package redisstore keeps locks in Redis 7 or Valkey: one script to acquire
// and one to release, each a single request, and the server's clock, so that
// the clocks of the functions need not agree. [New] uses one server, one
// primary with replicas, or a cluster. Package redisquorum uses several
// independent servers.
//
// # Client
//
//	store, err := redisstore.New(redis.NewClient(&redis.Options{Addr: "…:6379", DialerRetries: 1}))
//	lambda.Start(middleware.WithLock(key, handle, middleware.Store(store)))
//
// A Store uses the connections of a *redis.Client, but its own settings:
// ContextTimeoutEnabled, so that a hung connection does not use up the
// invocation, and no retries, because package lock repeats requests itself. The
// client itself opens the connections: with DialerRetries: 1, a refused one is
// reported as such. By default the client goes on dialling until the time of
// the attempt is over.
//
// A cluster client, or a type that wraps a client, keeps its settings. It must
// have ContextTimeoutEnabled, or New returns a *driver.ConfigError. If it
// repeats a request that had no answer, as a cluster client does after it was
// redirected, a refusal does not tell whether an earlier attempt was applied.
// So package lock abandons a claim with one more request, and the end of a lock
// counts as applied if the row shows it, and nobody has claimed it since.
//
// A *redis.Ring is refused: it moves names to another server when one does not
// answer.
//
// # What a failover means
//
// Redis and Valkey replicate asynchronously, so a replica that takes over may
// not know the latest writes, and WAIT does not change that:
// https://redis.io/docs/latest/commands/wait/. The same holds for ElastiCache:
// https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/Replication.html. A
// lock whose acquire is lost can then have a second owner until the first one
// notices, at its next renewal or its release. The fencing token still rises,
// because a new owner's is at least the server's clock in microseconds: give it
// to the resource that must not be written twice. What else can be lost, by
// what, and which services and settings lose nothing:
// https://github.com/lambdalock/lambdalock/blob/main/docs/STORES.md#what-redis-may-lose.
//
// # Eviction
//
// A server whose memory is full deletes rows, unless its maxmemory-policy is
// noeviction; the default of ElastiCache is volatile-lru:
// https://docs.aws.amazon.com/whitepapers/latest/database-caching-strategies-using-redis/evictions.html.
// The first acquire asks for the setting, inside its own request, and a Store
// warns once through the default logger of log/slog. If the server does not
// report the setting, there is no warning. With noeviction, a server that is
// full refuses new claims, but still renews, completes and releases.
//
// # Permissions
//
//	~lambdalock:* +evalsha +eval +time +hmget +hgetall +hset +hdel +pexpireat
//
// A cluster client also needs +cluster|slots +cluster|shards +asking, to learn
// which server has a key. Listing rows needs +scan. +info allows the warning of
// eviction, and lets a quorum notice that two of its clients reach one server.
//
// # The row
//
// One hash per lock name, at the key "lambdalock:" and the name:
//
//	field          present       meaning
//	fence          always        fencing token: microseconds since 1970 when it was acquired, or the last one and one more if that is higher
//	stamp          always        orders claims (UTC, microseconds): when the last owner acquired, or a later claim was abandoned
//	ownerToken     while held    token of the acquisition that holds the name; in a cooldown a new one, which no acquisition has
//	claimStamp     while held    stamp of the owner's claim
//	heldUntil      while held    end of the lease by the owner's clock (UTC, microseconds)
//	leaseEnd       while held    end of the lease by the server's clock (microseconds since 1970)
//	holder         while held    who holds it: function, request id, log stream; not in a cooldown
//	event          while held    the event being worked on, if the key has one
//	payload        while held    digest of its payload, if the key has one
//	marks          while held    how many runs others have asked the holder for, with Latest, and until an event is completed; -1: no more
//	takesMarks     with Latest   1 while the holder looks at marks
//	interruptedFor while held    with OnInterrupted: for how many milliseconds after the lease the event counts as interrupted if the holder dies
//	cooldown       in a cooldown token of the acquisition that has ended: with HoldAtLeast the name stays held until leaseEnd
//	completed      with events   a line for each: event, when it is forgotten, digest of its payload; and after it, if it is known, a line with % and when it was completed
//	highestOrder   with orders   highest completed order
//	interrupted    after a death a line for each interrupted event: event, when it is forgotten, when its run began, digest of its payload, holder
//	resultBody     with Replay   result of resultEvent
//	resultEvent    with Replay
//	line           with waiters  the last place in line that a waiter was given: only paces them, see driver.Line
//	served         with waiters  the place of the last owner that had one
//	deleteAfter    always        until when the row is kept, by the owner's clock
//	memoryStamp    in a quorum   stamp of the claim that completed last, so that the newest memory is known
//	cleared        in a quorum   token of the lock that others released here, because its own release did not arrive in time
//	takenFrom      after a death run of the dead owner from whom the last claim took over: a quorum keeps it if that claim is given up
//	rowFormat      never yet     reserved: rows that have it are refused, so that a later format can lock this one out
//
// The events are one field, because a completion replaces all of them and an
// acquire returns all of them: 5,000 are one value to write and one to read,
// which the script searches as text.
//
// A release keeps the row, with its fence, stamp and memory. The server deletes
// it at deleteAfter, counted from its own clock, and at least an hour after the
// last request, so that a function whose clock is wrong deletes nothing early.
//
// # The condition of an acquire
//
// P and F numbers are the promises and faults of
// https://github.com/lambdalock/lambdalock/blob/main/docs/PROMISES.md.
//
//	there is no rowFormat                                           F41: a newer version wrote the row
//	completed has no such event, or its time has passed             P5: the event is not completed
//	highestOrder is below the order, byte by byte                   the event is not stale
//	and there is no ownerToken, or leaseEnd has passed, and         F19, F23: the name is free, or its holder died …
//	    stamp is below the claim's, and                             F3, F44: … and this is not a late copy of a claim that has ended …
//	    the claim names ownerToken if there is interruptedFor,      … and the claim knows what that dead holder has left
//	    and no dead owner otherwise
//	 or ownerToken is the claim's, and                              F1: our own claim, repeated …
//	    neither stamp nor heldUntil is above the claim's            F44: … and not after a renewal, or a later round
//
// That is Row.Judge of package lock/driver, in the script. Which interrupted
// events a row keeps, no script can tell: a claim that was refused only because
// it names no dead owner is sent once more, with that owner and those events.
//
// A copy of the claim, or of the renewal, that was applied last changes
// nothing, so it cannot extend the lease twice. A renewal that arrives when
// leaseEnd has passed is refused (F3, F19): its owner may be dead. A script
// looks first and writes afterwards, so a full server or a replica refuses it
// whole. Only a server that lacks or denies a command stops in the middle: such
// an error counts as one after which the request may have been applied, and
// Check finds a denial before. Each script uses one key, so it runs on a
// cluster.
package redisstore
