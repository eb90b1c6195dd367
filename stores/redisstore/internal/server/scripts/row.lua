-- Every script begins with this part. The answer of each is the same: what was
-- applied, the server's clock, 1 if a claim took over from a dead owner, the
-- server's memory settings (if they were asked for), the row as it is afterwards,
-- and if the claim was granted just now, the fence before it and the stamp of the
-- claim before it, which is its own if it was granted before.
local key = KEYS[1]

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- Times of the server are microseconds since 1970, which a Lua number holds
-- exactly until the year 2255.
local function micros(n)
  return string.format('%.0f', n)
end

-- earlier compares bytewise. Lua's own operator follows the server's locale.
local function earlier(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- settings returns maxmemory, maxmemory-policy and run_id if they were asked for,
-- else nothing. What the server does not tell is empty: asked again, it would
-- refuse again, and log each refusal.
local function settings(asked)
  if asked ~= '1' then
    return {}
  end
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then
    return { '', '', '' }
  end
  local server = redis.pcall('INFO', 'server')
  local id = type(server) == 'string' and string.match(server, 'run_id:(%x+)') or ''
  return { string.match(info, 'maxmemory:(%d+)') or '', string.match(info, 'maxmemory_policy:([%w-]+)') or '', id }
end

-- pack returns texts as one, in which each stands after its length, such as
-- 5:fence. To read many small texts would cost the client more than all else.
local function pack(texts)
  for i, text in ipairs(texts) do
    texts[i] = #text .. ':' .. text
  end
  return table.concat(texts)
end

local function answer(applied, tookOver, asked, fence, claimStamp)
  return { applied, micros(now), tookOver, settings(asked), pack(redis.call('HGETALL', key)), fence or '', claimStamp or '' }
end

-- keepFor makes the server delete the row after so many milliseconds.
local function keepFor(ms)
  redis.call('PEXPIREAT', key, micros(math.floor(now / 1000) + tonumber(ms)))
end
