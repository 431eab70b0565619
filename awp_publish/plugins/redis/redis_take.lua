-- Lease members of the queue KEYS[1] that are due: ARGV[2] seconds of lease, ARGV[3] how many at most. ARGV[1] is the
-- deadline in seconds of our clock, after which nothing is done.
local time = redis.call("TIME")
local now = time[1] + time[2] / 1000000
if now > tonumber(ARGV[1]) then
  return redis.error_reply("LATE the run came after its deadline")
end
local members = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", string.format("%.6f", now), "LIMIT", 0, ARGV[3])
for _, member in ipairs(members) do
  redis.call("ZADD", KEYS[1], string.format("%.6f", now + ARGV[2]), member)
end
return members
