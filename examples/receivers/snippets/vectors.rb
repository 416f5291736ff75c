# Checks verify.rb against the golden vectors: ruby vectors.rb vectors.json
require "json"
require_relative "verify"

count = wrong = 0
JSON.parse(File.read(ARGV[0], encoding: "UTF-8"))["service"].each do |v|
  next if v["want"] == "too_large" # the code that reads the body limits it

  body = v["fill"] ? [v["fill"]["byte"]].pack("C") * v["fill"]["count"] : v["body"].unpack1("m0")
  begin
    verdict = verify(v["secrets"], v["headers"]["x-service-signature"]&.join(", "), body) ? "ok" : "refused"
  rescue ArgumentError
    verdict = "no_secret"
  end
  want = %w[ok no_secret].include?(v["want"]) ? v["want"] : "refused"
  if verdict != want
    puts "WRONG #{v["name"]}: #{verdict}"
    wrong += 1
  end
  count += 1
end
puts "#{count} vectors"
exit wrong.zero?
