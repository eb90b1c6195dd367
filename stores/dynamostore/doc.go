// Package dynamostore keeps locks in an Amazon DynamoDB table: one UpdateItem
// to acquire, one to release, none to read, and no permission but
// dynamodb:UpdateItem.
//
// # The row
//
// One item per lock name, small enough for one 1 KB write unit with a name of
// usual length, and readable in the console:
//
//	attribute    type  present       meaning
//	lock         S     always        partition key: namespace, "/", name
//	fence        N     always        fencing token; starts at microseconds since 1970, grows by one per acquisition
//	since        S     always        stamp (UTC, microseconds): when the last owner acquired, or a claim was given up after that
//	lease        S     while held    token of the owner
//	expires      S     while held    end of the lease (UTC, microseconds)
//	holder       S     while held    who it is: function, request id, log stream
//	event        S     while held    the event being worked on, if the key has one
//	done         M     with events   completed event → when it is forgotten (N, epoch milliseconds; the decimals count completions)
//	top          S     with orders   highest completed order
//	replay       B     with Replay   result of the event in replayOf
//	replayOf     S     with Replay
//	deleteAfter  N     always        the table's TTL attribute (epoch seconds): garbage collection, never the lease
//	rowFormat    N     never yet     reserved: rows with it are refused, so that a later format can lock this one out
//
// Times that are compared are strings of fixed width, which sort as times do and
// which a person can read.
//
// # The condition of an acquire
//
//	clause                                                  answers
//	attribute_not_exists(rowFormat)                         F41: a newer version wrote the row
//	and (attribute_not_exists(lease)                        nobody holds the name …
//	     or expires < :now)                                 F19, F23: … or its owner died; decided by us, not by TTL
//	    and (since absent or since < :stamp)                F3, F44: … and this is not a late copy of a claim that has ended
//	 or (lease = :token and expires <= :expires             F1: our own claim, repeated; not after a renewal …
//	     and since <= :stamp)                               F44: … and not after a later round of the same claim
//	and (done.<event> absent or done.<event> < :millis)     P5: not completed already
//	and (top absent or top < :order)                        not overtaken
//
// The new owner asks for the row as it was before (ALL_OLD): what is there now it
// has written itself, and a holder in the old row is one that died, because a
// release removes it.
//
// Renew and release are conditional on lease = :token and on the row's format (F4, F5,
// F21, F41), so a late owner changes nothing. A claim that is given up raises since,
// whoever owns the row (F2, F44), which turns away every copy of it that arrives
// afterwards; a copy that came first is known by its token and released, mostly in the
// same request.
//
// While a row is held, deleteAfter lies a year ahead: what the row remembers, and for how
// long, is known only to its owner, whose release sets the exact time (F47).
//
// # Facts relied on
//
// A failed condition returns the item that failed it when asked to
// (ReturnValuesOnConditionCheckFailure) and costs what a write of the item would, a
// write unit for each KB:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html.
// TTL deletes within a few days, in epoch seconds:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html.
// Size of items and keys:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html.
// DescribeEndpoints is answered whatever the IAM policy says:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/inter-network-traffic-privacy.html.
//
// A global table with asynchronous replication evaluates conditions per Region
// and is no lock; use one Region, or multi-Region strong consistency.
package dynamostore
