"""The script book's texts. Each is what a competent programmer would ship: first the shortest that should
do, then versions that also look after themselves. They are stateless: an option is cut after a few steps
and called again, so every version finds out from the view where it stands."""
