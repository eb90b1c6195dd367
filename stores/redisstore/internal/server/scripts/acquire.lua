local token, stamp, heldUntil, lease = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local holder, event, payload = ARGV[5], ARGV[6], ARGV[7]
local entry, moment, order = ARGV[8], ARGV[9], ARGV[10]
local deleteAfter, keep = ARGV[11], ARGV[12]
local leastFence, asked, place, takesMarks = tonumber(ARGV[13]), ARGV[14], ARGV[15], ARGV[16]
local interruptedFor, dead, interrupted = ARGV[17], ARGV[18], ARGV[19]
local memory = 20 -- where it begins

local row = redis.call('HMGET', key, 'rowFormat', 'ownerToken', 'stamp', 'heldUntil', 'leaseEnd', 'fence', 'holder', 'completed', 'highestOrder', 'claimStamp', 'interruptedFor', 'event', 'payload')
local format, owner, oldStamp, oldUntil, leaseEnd, fence, completed, highest =
  row[1], row[2], row[3], row[4], tonumber(row[5] or ''), tonumber(row[6] or ''), row[8], row[9]

-- remembered reports whether the event is completed and not yet forgotten.
local function remembered()
  local lines, start, from = '\n' .. completed, '\n' .. entry, 1
  while true do
    local _, last = string.find(lines, start, from, true)
    if not last then
      return false
    end
    if not earlier(string.sub(lines, last + 1, last + #moment), moment) then
      return true
    end
    from = last
  end
end

if format
  or (entry ~= '' and completed and remembered())
  or (order ~= '' and highest and not earlier(highest, order)) then
  return answer(0, '', asked)
end
local own = owner and owner == token
local claimBefore = row[10] or oldStamp or ''
if own then
  claimBefore = stamp
  if row[10] == stamp and (fence or 0) < leastFence then
    redis.call('HSET', key, 'fence', micros(leastFence))
  end
  if earlier(stamp, oldStamp) or earlier(heldUntil, oldUntil) then
    return answer(0, '', asked, '', row[10] == stamp and stamp)
  end
  if stamp == oldStamp and heldUntil == oldUntil then -- a copy of the claim that has the row
    return answer(1, '', asked, '', claimBefore)
  end
elseif owner and now <= leaseEnd then
  return answer(0, '', asked)
elseif oldStamp and not earlier(oldStamp, stamp) then
  return answer(0, '', asked)
elseif dead ~= (owner and row[11] and owner or '') then -- the caller keeps the event of a dead owner
  return answer(0, '', asked)
end

local till, tookOver = now + lease, ''
if own then
  till = math.max(till, leaseEnd)
elseif row[7] then
  tookOver = '1'
  redis.call('HSET', key, 'takenFrom', pack({ row[7], row[12] or '', row[13] or '', oldStamp or '', claimBefore }))
end
-- A server may have gone back to an earlier fence, so the clock counts too. What
-- a quorum restores goes on with its fence.
local before = fence or 0
fence = leastFence > 0 and math.max(before, leastFence) or math.max(before + 1, now)
redis.call('HSET', key, 'ownerToken', token, 'stamp', stamp, 'claimStamp', stamp, 'heldUntil', heldUntil, 'leaseEnd', micros(till),
  'fence', micros(fence), 'holder', holder, 'event', event, 'payload', payload, 'deleteAfter', deleteAfter)
redis.call('HDEL', key, 'cooldown')
if event == '' then
  redis.call('HDEL', key, 'event')
end
if payload == '' then
  redis.call('HDEL', key, 'payload')
end
if takesMarks == '' then
  redis.call('HDEL', key, 'takesMarks')
else
  redis.call('HSET', key, 'takesMarks', takesMarks)
end
if interruptedFor == '0' then
  redis.call('HDEL', key, 'interruptedFor')
else
  redis.call('HSET', key, 'interruptedFor', interruptedFor)
end
if dead ~= '' and not own then
  redis.call('HSET', key, 'interrupted', interrupted)
end
if place ~= '0' then
  redis.call('HSET', key, 'served', place)
end
keepFor(keep)
if not oldStamp and ARGV[memory] then -- a node of a quorum that has lost the row
  for i = memory, #ARGV, 2 do
    redis.call('HSET', key, ARGV[i], ARGV[i + 1])
  end
end
return answer(1, tookOver, asked, micros(before), claimBefore)
