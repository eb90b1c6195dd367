// Package objectstore keeps locks in an object storage service with conditional
// writes. Each lock name has one object, which the store reads, judges, and
// writes if it has not changed since. Packages s3store and azblobstore use it.
// For another service, implement [Objects].
//
// # The object
//
// The key is the name, percent-encoded (see [Key]). The body is JSON:
//
//	field          present       meaning
//	name           always        the lock name
//	fence          always        fencing token: microseconds since 1970, rises with every acquisition
//	fenceBefore    from 2nd on   the fence before that: tells whose completion the memory is
//	stamp          always        orders claims: when the last owner acquired, or a later claim was abandoned
//	ownerToken     while held    token of the acquisition that holds the name; in a cooldown a new one, which no acquisition has
//	heldUntil      while held    end of the lease by the owner's clock
//	lease          while held    how long the lease lasts from the write that began it
//	leasedAt       after others  when the lease began, by the service's clock, if others wrote the object since
//	holder         while held    who holds it: function, request id, log stream; not in a cooldown
//	event          while held    the event being worked on, if the key has one
//	payload        while held    digest of its payload, if the key has one
//	marks          while held    how many runs others have asked the holder for, with Latest, and until an event is completed; -1: no more
//	takesMarks     with Latest   true while the holder looks at marks
//	interruptedFor while held    with OnInterrupted: for how long after the lease the event counts as interrupted if the holder dies
//	cooldown       in a cooldown token of the acquisition that has ended: with HoldAtLeast the name stays held until the lease ends
//	completed      with events   completed events in the order of completion, when each is forgotten and, if it is known, was completed (at)
//	highestOrder   with orders   highest completed order
//	interrupted    after a death interrupted events: when the run began (since), its holder, and when each is forgotten
//	resultBody     with Replay   result of resultEvent (base64)
//	resultEvent    with Replay
//	deleteAfter    always        until when the row must be kept, for those who delete objects
//	writes         always        how often the object was written: no two writes have the same bytes
//	rowFormat      never yet     reserved: rows that have it are refused, so that a later format can lock this one out
//
// If two writes had the same bytes, they might have the same version, such as
// an ETag that is a digest. A delayed duplicate of the first would then be
// applied again.
//
// # The rule
//
// A request reads the object, decides with [driver.Row.Judge], and writes the
// new row on condition that the object's version is unchanged. If it has
// changed, the request starts over; after a few rounds it fails with a
// conflict, which package lock retries. The condition also rejects late copies
// of a write, because they find another version.
//
// The store skips the read if it probably knows the result. It caches the rows
// that it read or wrote most recently, and uses those that were free or held by
// the request's own token. For a name it has not seen, it first tries to create
// the object if the previous such name had none; otherwise it reads first. A
// cached or guessed row can only save a request: every write is conditional,
// and a request is refused only because of a row that was just read. Otherwise
// an event that was forgotten elsewhere would be skipped for as long as the
// process lives.
//
// The store never deletes an object, because its fence and stamp would be lost.
//
// # The clock
//
// The service's clock decides when a lease ends. The lease starts at the
// object's modification time and lasts for the duration in the claim. A reader
// compares the modification time with the service's time in the same response.
// Both may be rounded to whole seconds, so the store adds a second: a name is
// never taken over before its lease has ended, and can be taken over two
// seconds later at most. A renewal never shortens a lease.
//
// A renewal by a process that was frozen past the end of its lease is refused.
// A write has no condition on the time, though. One that is still under way
// when the lease ends is applied if the name was not taken over, and the lease
// begins anew.
//
// Abandoning a claim writes to another owner's object, which changes its
// modification time. That write therefore stores the start of the lease in
// leasedAt. A duplicate of a claim or renewal that was already applied writes
// nothing, because a write would restart the lease.
package objectstore
