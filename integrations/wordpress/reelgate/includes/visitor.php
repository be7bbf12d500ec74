<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

// What a visitor's page asks for, with the tag that it was rendered with: at admin-ajax.php, which no page cache stores, and which
// knows a signed-in visitor by their cookie alone.

/** How long an OTP may wait for its player. */
const OTP_TTL_S = 300;

/** OTPs of one address in a minute: enough for a class behind it, and no more than a tenth of what the server gives this site. */
const OTPS_A_MINUTE = 240;

/** An OTP for the video of a tag. */
function answer_otp() {
	$lesson = admit_visitor();
	if ( ! may_ask_again() ) {
		refuse_visitor( 429, 'later', __( 'Too many videos were opened from your network. Wait a minute, then try again.', 'reelgate' ) );
	}
	$user  = $lesson['visitor'] > 0 ? get_userdata( $lesson['visitor'] ) : false;
	$reply = call_api( 'POST', '/videos/' . $lesson['video'] . '/otp', otp_options( $user, $lesson ) );
	if ( is_wp_error( $reply ) ) {
		// For the site's owner; a visitor can do nothing about it.
		error_log( 'reelgate: ' . $reply->get_error_message() ); // phpcs:ignore
		refuse_visitor( 503, 'server', __( 'The video cannot be opened at the moment. Try again later.', 'reelgate' ) );
	}
	wp_send_json( array( 'otp' => $reply['otp'], 'playbackInfo' => $reply['playbackInfo'], 'signedIn' => (bool) $user ) );
}

/** @return object|array the body of an OTP's request. */
function otp_options( $user, array $lesson ) {
	$watermark = $lesson['plain'] ? null : watermark_for( options()['watermark'], $user );
	$options   = array( 'ttl' => OTP_TTL_S );
	if ( null !== $watermark ) {
		$options['annotate'] = $watermark;
	}
	if ( $user ) {
		$options['userId'] = viewer_id( $user->ID );
		$options['viewer'] = viewer_of( $user );
	}
	return apply_filters( 'reelgate_otp_options', $options, $user, $lesson['video'] );
}

/**
 * Whether a signed-in visitor has completed a video, as the server has counted: the page's word is no proof. Runs `reelgate_completed`
 * once for each user, video and post.
 */
function answer_completed() {
	$lesson = admit_visitor();
	if ( 0 === $lesson['visitor'] ) {
		wp_send_json( array( 'completed' => false ) );
	}
	// A user is one for all sites of a network, a post is not.
	$key = 'reelgate_completed_' . get_current_blog_id() . '_' . $lesson['post'] . '_' . $lesson['video'];
	if ( get_user_meta( $lesson['visitor'], $key, true ) ) {
		wp_send_json( array( 'completed' => true ) );
	}
	if ( ! may_ask_again() ) {
		refuse_visitor( 429, 'later', __( 'Wait a minute, then try again.', 'reelgate' ) );
	}
	$reply   = call_api( 'GET', '/viewers/' . viewer_id( $lesson['visitor'] ) );
	$watched = is_wp_error( $reply ) ? array() : wp_list_filter( $reply['rows'], array( 'video' => $lesson['video'] ) );
	$row     = reset( $watched );
	if ( ! $row || empty( $row['completedAt'] ) ) {
		wp_send_json( array( 'completed' => false ) );
	}
	// Unique: of two pages that report it concurrently one runs the action.
	if ( add_user_meta( $lesson['visitor'], $key, $row['completedAt'], true ) ) {
		do_action( 'reelgate_completed', $lesson['visitor'], $lesson['video'], $lesson['post'] );
	}
	wp_send_json( array( 'completed' => true ) );
}

/**
 * Ends the request unless its tag lets the visitor watch.
 *
 * @return array video, post, plain, and `visitor`: the user's id, 0 when signed out.
 */
function admit_visitor() {
	nocache_headers();
	if ( ! is_from_own_page() ) {
		refuse_visitor( 403, 'foreign-site', __( 'This page may not open the video.', 'reelgate' ) );
	}
	$sent = array();
	foreach ( array_merge( TAG_FIELDS, array( 'tag' ) ) as $name ) {
		$sent[ $name ] = isset( $_POST[ $name ] ) ? wp_unslash( $_POST[ $name ] ) : null; // phpcs:ignore -- the tag is the proof
	}
	$visitor = get_current_user_id();
	$verdict = check_tag( $sent, $visitor );
	if ( 'old' === $verdict ) {
		refuse_visitor( 403, 'reload', __( 'This page has been open, or stored, for some days. Reload it to watch.', 'reelgate' ) );
	}
	if ( 'foreign' === $verdict ) {
		refuse_visitor( 403, 'reload', __( 'You are signed in as another user, or no longer. Reload the page to watch.', 'reelgate' ) );
	}
	if ( 'valid' !== $verdict ) {
		refuse_visitor( 403, 'refused', __( 'This page may not open the video.', 'reelgate' ) );
	}
	$post = (int) $sent['post'];
	/**
	 * Whether a visitor may watch now: for course plug-ins. The tag has proved that this site has shown them the lesson.
	 *
	 * @param bool   $may     whether they may read the post, now.
	 * @param string $video   its id.
	 * @param int    $post    the post that shows it; 0: none, such as a widget.
	 * @param int    $visitor the user; 0: signed out.
	 */
	if ( ! apply_filters( 'reelgate_may_play', may_read( $post, $visitor ), $sent['video'], $post, $visitor ) ) {
		refuse_visitor( 403, 'refused', 0 === $visitor ? __( 'Sign in to watch this video.', 'reelgate' ) : __( 'You may not watch this video any more.', 'reelgate' ) );
	}
	return array( 'video' => $sent['video'], 'post' => $post, 'plain' => '1' === $sent['plain'], 'visitor' => $visitor );
}

/** A post may have become a draft, or private, since the page was rendered. */
function may_read( $post, $visitor ) {
	if ( 0 === $post ) {
		return true;
	}
	$found = get_post( $post );
	return $found && ( is_post_publicly_viewable( $found ) || user_can( $visitor, 'read_post', $post ) );
}

/** Another site's script may send a visitor's cookies, in some browsers; it may not get an OTP with them. */
function is_from_own_page() {
	if ( 'POST' !== ( $_SERVER['REQUEST_METHOD'] ?? '' ) ) {
		return false;
	}
	// Sent by browsers to secure sites; it also knows the site's other names.
	if ( isset( $_SERVER['HTTP_SEC_FETCH_SITE'] ) ) {
		return 'same-origin' === $_SERVER['HTTP_SEC_FETCH_SITE'];
	}
	$origin = strtolower( $_SERVER['HTTP_ORIGIN'] ?? '' );
	return '' === $origin || in_array( $origin, array( site_origin(), site_origin( admin_url() ) ), true );
}

/** Counts what an address asks for, so that no visitor uses up what the server gives this site. */
function may_ask_again() {
	$key   = 'reelgate_' . substr( hash_hmac( 'sha256', ( $_SERVER['REMOTE_ADDR'] ?? '' ) . intdiv( time(), 60 ), tag_secret() ), 0, 20 );
	$count = (int) get_transient( $key );
	set_transient( $key, $count + 1, 120 );
	return $count < (int) apply_filters( 'reelgate_otps_a_minute', OTPS_A_MINUTE );
}

/** @param string $code 'reload': the page has a button for it; 'later', 'server', 'refused', 'foreign-site'. */
function refuse_visitor( $status, $code, $message ) {
	wp_send_json( array( 'code' => $code, 'message' => $message ), $status );
}
