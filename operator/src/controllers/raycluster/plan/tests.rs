mod deletion;
mod gang;
mod groups;
mod head;
mod multi_host;
mod whole;
